//! Tables and indexes in a bucket: a server of S3 behind a proxy that counts, delays and breaks requests.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use ironbloom_testing::Start as _;
use ironbloom_testing::s3::{BUCKET, Fault, S3Server};

use crate::program::Scratch;

/// A server, and a folder that the program runs in, which also holds its cache.
pub(crate) struct Cloud {
    pub(crate) server: S3Server,
    pub(crate) scratch: Scratch,
}

/// Output of a run, and its status.
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Cloud {
    pub(crate) fn start() -> Option<Self> {
        let scratch = Scratch::new();
        let server = S3Server::start(scratch.as_ref())?;
        Some(Self { server, scratch })
    }

    pub(crate) fn command<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.scratch.command(args);
        command.envs(self.server.environment());
        command.env("IRONBLOOM_CACHE_DIR", self.scratch.path("cache"));
        command.env("IRONBLOOM_RETRY_SECONDS", "2");
        command.env_remove("AWS_PROFILE");
        command
    }

    pub(crate) fn run<const N: usize>(&self, args: [&str; N]) -> Run {
        run(&mut self.command(args))
    }

    /// Runs the program, which succeeds, and returns what it prints.
    #[track_caller]
    pub(crate) fn works<const N: usize>(&self, args: [&str; N]) -> String {
        let run = self.run(args);
        assert_eq!(run.status, 0, "{args:?}: {}{}", run.stdout, run.stderr);
        run.stdout
    }

    /// Runs the program, which fails with a message that has these words.
    #[track_caller]
    fn fails<const N: usize>(&self, args: [&str; N], words: &str) -> String {
        let run = self.run(args);
        assert_eq!(run.status, 2, "{args:?}: {}{}", run.stdout, run.stderr);
        assert!(run.stderr.contains(words), "{words:?} in {}", run.stderr);
        run.stderr
    }

    /// Tables `t/00.csv`, …: rows whose ids go on from table to table, of a kind of 100.
    pub(crate) fn put_tables(&self, tables: usize, rows: usize) {
        for table in 0..tables {
            self.server.put(&format!("t/{table:02}.csv"), table_of(table, rows).as_bytes());
        }
    }

    pub(crate) fn forget(&self) {
        let _ = std::fs::remove_dir_all(self.scratch.path("cache"));
    }
}

pub(crate) fn run(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn table_of(table: usize, rows: usize) -> String {
    let mut text = String::from("id,kind,name\n");
    for row in table * rows..(table + 1) * rows {
        let _ = writeln!(text, "{row},{},name {row}", row * 7 % 100);
    }
    text
}

fn url(key: &str) -> String {
    format!("s3://{BUCKET}/{key}")
}

pub(crate) const INDEX: &str = "s3://bucket/t/t.ibx";

/// Three tables in a bucket, with their index beside them.
pub(crate) fn three_tables() -> Option<Cloud> {
    let cloud = Cloud::start()?;
    cloud.put_tables(3, 1000);
    cloud.works(["index", "build", "s3://bucket/t/", "-o", INDEX]);
    Some(cloud)
}

#[test]
fn every_command_works_in_a_bucket() {
    let Some(cloud) = three_tables() else { return };
    let count = |condition: &str| {
        cloud.run(["index", "find", INDEX, condition, "--count"]).stdout.trim().to_owned()
    };
    assert_eq!(count("id = 1234"), "1");
    assert_eq!(count("kind = 63"), "30");
    assert_eq!(count("id = 3000"), "0");
    let shown = cloud.works(["index", "find", INDEX, "id = 2999", "--format", "csv"]);
    assert_eq!(shown, "id,kind,name\n2999,93,name 2999\n");
    // A pattern, and the names relative to the index.
    cloud.server.put("t/more/2024-01.csv", table_of(3, 1000).as_bytes());
    cloud.works(["index", "append", INDEX, "s3://bucket/t/*/2024-??.csv"]);
    assert_eq!(count("id = 3456"), "1");
    let info = cloud.works(["index", "info", INDEX]);
    assert!(info.contains("more/2024-01.csv") && !info.contains("s3://bucket/t/00"), "{info}");
    cloud.works(["index", "drop", INDEX, &url("t/00.csv")]);
    assert_eq!(count("id = 1"), "0");
    cloud.works(["index", "compact", INDEX]);
    assert!(cloud.works(["index", "verify", INDEX, "--tables"]).contains("as they were indexed"));
    // An index here of tables there.
    cloud.works(["index", "build", "s3://bucket/t/01.csv", "-o", "local.ibx"]);
    let found = cloud.works(["index", "find", "local.ibx", "id = 1001", "--format", "csv"]);
    assert_eq!(found, "id,kind,name\n1001,7,name 1001\n");
    let file = format!("file://{}", cloud.scratch.path("local.ibx").display());
    assert_eq!(cloud.works(["index", "find", &file, "id = 1001", "--count"]).trim(), "1");
    assert!(!cloud.server.get("t/t.ibx").is_empty());
}

#[test]
fn what_is_not_there_or_not_an_index_is_said_so() {
    let Some(cloud) = three_tables() else { return };
    cloud.fails(["index", "find", "s3://bucket/none.ibx", "id = 1"], "no such object");
    cloud.fails(["index", "build", "s3://bucket/none/", "-o", INDEX], "no table under this prefix");
    cloud.fails(["index", "build", "s3://bucket/t/*.pq", "-o", INDEX], "nothing matches");
    cloud.fails(["index", "info", "s3://bucket/t/00.csv"], "not an Ironbloom index");
    let build = ["index", "build", "s3://bucket/t/00.csv", "-o", "s3://bucket/t/01.csv"];
    cloud.fails(build, "is not an Ironbloom index, so it is not overwritten");
    assert_eq!(cloud.server.get("t/01.csv"), table_of(1, 1000).as_bytes());
    cloud.fails(["index", "info", "hdfs://host/t.ibx"], "s3, gs, az, http and https");
}

#[test]
fn a_table_replaced_under_the_index_is_noticed_and_can_be_skipped() {
    let Some(cloud) = three_tables() else { return };
    cloud.works(["index", "find", INDEX, "id = 1001"]);
    // As long as before, and in the cache as it was.
    let other = table_of(1, 1000).replace("name 1001", "name 9999");
    cloud.server.put("t/01.csv", other.as_bytes());
    cloud.fails(["index", "find", INDEX, "id = 1001"], "changed since it was indexed");
    assert_eq!(cloud.works(["index", "find", INDEX, "id = 1", "--count"]).trim(), "1");
    let skipped =
        cloud.run(["index", "find", INDEX, "id in (1, 1001)", "--count", "--skip-changed"]);
    assert_eq!((skipped.status, skipped.stdout.trim()), (3, "1"), "{}", skipped.stderr);
    assert!(
        skipped.stderr.contains("skipped: rebuild: s3://bucket/t/01.csv"),
        "{}",
        skipped.stderr
    );
    cloud.server.delete("t/01.csv");
    cloud.fails(["index", "find", INDEX, "id = 1001"], "is missing");
    // The same bytes again are the same table.
    cloud.server.put("t/01.csv", table_of(1, 1000).as_bytes());
    assert_eq!(cloud.works(["index", "find", INDEX, "id = 1001", "--count"]).trim(), "1");
}

#[test]
fn faults_that_pass_are_not_noticed_and_those_that_stay_end_in_an_error() {
    let Some(cloud) = three_tables() else { return };
    let faults = [
        Fault::Status(503),
        Fault::Status(500),
        Fault::Reset,
        Fault::LostAnswer,
        Fault::HalfAnswer,
        Fault::Status(429),
    ];
    for fault in faults {
        cloud.forget();
        cloud.server.proxy.take_log();
        // The first request, and one in the middle.
        cloud.server.proxy.fail_next([fault, fault]);
        let run = cloud.run(["index", "find", INDEX, "id = 1234", "--format", "csv"]);
        assert_eq!(run.stdout, "id,kind,name\n1234,38,name 1234\n", "{fault:?}: {}", run.stderr);
        assert!(cloud.server.proxy.take_log().len() > 2, "{fault:?}");
    }
    for fault in [Fault::Status(503), Fault::Reset, Fault::HalfAnswer] {
        cloud.forget();
        cloud.server.proxy.fail_always(Some(fault));
        let run = cloud.run(["index", "find", INDEX, "id = 1234"]);
        cloud.server.proxy.fail_always(None);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{fault:?}");
        assert!(run.stderr.contains("s3://bucket/t/t.ibx: "), "{fault:?}: {}", run.stderr);
    }
}

#[test]
fn an_index_is_written_completely_or_not_at_all_whatever_fails() {
    let Some(cloud) = three_tables() else { return };
    let before = cloud.server.get("t/t.ibx");
    let drop = |table: &str| ["index", "drop", INDEX, table].map(str::to_owned);
    // The answer to each request of a drop is lost in turn; in the end it is done once, and not reported as failed.
    cloud.server.proxy.take_log();
    cloud.works(["index", "drop", INDEX, "00.csv"]);
    let requests = cloud.server.proxy.take_log().len();
    assert!(requests > 3, "{requests}");
    for number in 0..requests {
        for fault in [Fault::LostAnswer, Fault::Status(503), Fault::Reset] {
            cloud.server.put("t/t.ibx", &before);
            // The others go well.
            cloud.server.proxy.fail_at(number, fault);
            let args = drop("00.csv");
            let run = run(&mut cloud.command(args.iter().map(String::as_str)));
            cloud.server.proxy.clear();
            let now = cloud.run(["index", "find", INDEX, "id = 1", "--count"]).stdout;
            let is_done = now.trim() == "0";
            assert_eq!(run.status == 0, is_done, "request {number}, {fault:?}: {}", run.stderr);
        }
    }
    // A server that stays dead.
    cloud.server.put("t/t.ibx", &before);
    cloud.server.proxy.fail_always(Some(Fault::Reset));
    let run = cloud.run(["index", "drop", INDEX, "00.csv"]);
    cloud.server.proxy.fail_always(None);
    assert_eq!(run.status, 2);
    assert_eq!(cloud.server.get("t/t.ibx"), before);
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let Some(cloud) = Cloud::start() else { return };
    cloud.put_tables(7, 300);
    cloud.works(["index", "build", "s3://bucket/t/00.csv", "-o", INDEX]);
    let tables: Vec<String> = (1..7).map(|table| url(&format!("t/{table:02}.csv"))).collect();
    let spawned: Vec<_> = tables
        .iter()
        .map(|table| {
            let mut command = cloud.command(["index", "append", INDEX, table]);
            command.stdout(std::process::Stdio::null()).start()
        })
        .collect();
    for mut child in spawned {
        assert!(child.wait().unwrap().success());
    }
    for row in [5, 305, 605, 905, 1205, 1505, 1805] {
        let condition = format!("id = {row}");
        assert_eq!(cloud.works(["index", "find", INDEX, &condition, "--count"]).trim(), "1");
    }
    // A change that cannot be made any more is an error.
    cloud.fails(["index", "append", INDEX, &tables[0]], "already in the index");
}

#[test]
fn a_store_that_ignores_conditions_is_not_written_to() {
    let Some(cloud) = three_tables() else { return };
    let before = cloud.server.get("t/t.ibx");
    cloud.server.proxy.ignore_conditions(true);
    cloud.fails(["index", "drop", INDEX, "00.csv"], "no conditional puts");
    let build = ["index", "build", "s3://bucket/t/00.csv", "-o", "s3://bucket/new.ibx"];
    cloud.fails(build, "no conditional puts");
    let mut command = cloud.command(["index", "drop", INDEX, "00.csv"]);
    let disabled = run(command.env("AWS_CONDITIONAL_PUT", "disabled"));
    assert!(disabled.stderr.contains("no conditional puts"), "{}", disabled.stderr);
    cloud.server.proxy.ignore_conditions(false);
    assert_eq!(cloud.server.get("t/t.ibx"), before);
}

#[test]
fn the_cache_saves_requests_and_damage_to_it_is_noticed() {
    let Some(cloud) = three_tables() else { return };
    let ask = || {
        cloud.server.proxy.take_log();
        let found =
            cloud.works(["index", "find", INDEX, "id = 1234", "kind = 38", "--format", "csv"]);
        assert_eq!(found, "id,kind,name\n1234,38,name 1234\n");
        cloud.server.proxy.take_log()
    };
    let cold = ask();
    let warm = ask();
    assert!(warm.len() <= 3 && warm.len() < cold.len(), "{cold:?} {warm:?}");
    let files: Vec<_> = std::fs::read_dir(cloud.scratch.path("cache")).unwrap().collect();
    assert!(!files.is_empty());
    for file in files {
        let path = file.unwrap().path();
        let content = std::fs::read(&path).unwrap();
        // Every byte counts, and so does every length.
        for at in (0..content.len()).step_by(content.len() / 7 + 1) {
            let mut damaged = content.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            ask();
            std::fs::write(&path, &content[..at]).unwrap();
            ask();
        }
        std::fs::write(&path, &content).unwrap();
    }
    // Nothing is kept if nothing may be.
    cloud.forget();
    for _ in 0..2 {
        let mut command = cloud.command(["index", "find", INDEX, "id = 1234"]);
        assert_eq!(run(command.env("IRONBLOOM_CACHE_BYTES", "0")).status, 0);
        assert!(!cloud.scratch.exists("cache"));
    }
}

#[test]
fn processes_share_the_cache_and_one_that_cannot_be_written_to_is_no_error() {
    let Some(cloud) = three_tables() else { return };
    let ask = |id: usize| {
        let condition = format!("id = {id}");
        let mut command = cloud.command(["index", "find", INDEX, &condition, "--format", "csv"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        (id, command.start())
    };
    for _ in 0..3 {
        cloud.forget();
        let asked: Vec<_> = (0..8).map(|number| ask(number * 370)).collect();
        for (id, child) in asked {
            let output = child.wait_with_output().unwrap();
            let wanted = format!("id,kind,name\n{id},{},name {id}\n", id * 7 % 100);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(String::from_utf8_lossy(&output.stdout), wanted, "{stderr}");
        }
        // What they have left is good: another process needs few requests, and gets the right answer.
        let count = ["index", "find", INDEX, "id = 370", "--count"];
        cloud.works(count);
        cloud.server.proxy.take_log();
        assert_eq!(cloud.works(count).trim(), "1");
        let requests = cloud.server.proxy.take_log();
        assert!(requests.len() <= 3, "{requests:?}");
    }
    cloud.forget();
    std::fs::write(cloud.scratch.path("cache"), "a file, not a folder").unwrap();
    assert_eq!(cloud.works(["index", "find", INDEX, "id = 370", "--count"]).trim(), "1");
}

/// Many processes that each write little add up.
#[test]
fn the_cache_keeps_its_limit_whoever_writes_to_it() {
    const TABLES: usize = 40;
    const ROWS: usize = 50;
    let Some(cloud) = Cloud::start() else { return };
    cloud.put_tables(TABLES, ROWS);
    cloud.works(["index", "build", "s3://bucket/t/", "-o", INDEX]);
    let ask_all = |most: u64| {
        cloud.forget();
        for table in 0..TABLES {
            let condition = format!("id = {}", table * ROWS + 7);
            let mut command = cloud.command(["index", "find", INDEX, &condition, "--count"]);
            let run = run(command.env("IRONBLOOM_CACHE_BYTES", most.to_string()));
            assert_eq!((run.status, run.stdout.trim()), (0, "1"), "{}", run.stderr);
        }
        let files = std::fs::read_dir(cloud.scratch.path("cache")).unwrap();
        let lengths: Vec<u64> = files.map(|file| file.unwrap().metadata().unwrap().len()).collect();
        (lengths.iter().sum::<u64>(), lengths.iter().copied().max().unwrap_or(0))
    };
    let (all, _) = ask_all(1 << 30);
    let most = all / 2;
    let (kept, largest) = ask_all(most);
    // What the last process has written may come on top.
    assert!(kept <= most + largest, "{kept} of at most {most}, and {largest}; all are {all}");
}

/// A Parquet file of rows whose ids go on from file to file, with two columns that are asked and three that are not.
fn parquet_of(table: usize, rows: usize) -> Vec<u8> {
    use ironbloom_index::arrow::array::{Int64Array, RecordBatch, StringArray};
    let ids = (table * rows..(table + 1) * rows).map(|row| row as i64);
    let column = |of: &dyn Fn(i64) -> i64| Int64Array::from_iter_values(ids.clone().map(of));
    let names = StringArray::from_iter_values(ids.clone().map(|id| format!("name {id}")));
    let batch = RecordBatch::try_from_iter([
        ("id", std::sync::Arc::new(column(&|id| id)) as _),
        ("kind", std::sync::Arc::new(column(&|id| id * 7 % 1000)) as _),
        ("name", std::sync::Arc::new(names) as _),
        ("time", std::sync::Arc::new(column(&|id| id * 1_000_003)) as _),
        ("size", std::sync::Arc::new(column(&|id| id % 77)) as _),
    ])
    .unwrap();
    let mut bytes = Vec::new();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// Requests of a question about two columns with one match: the first time, and by another process.
fn requests(cloud: &Cloud, id: usize) -> [Vec<String>; 2] {
    let conditions = [format!("id = {id}"), format!("kind = {}", id * 7 % 1000)];
    [(); 2].map(|()| {
        cloud.server.proxy.take_log();
        let found = cloud.works([
            "index",
            "find",
            INDEX,
            &conditions[0],
            &conditions[1],
            "--format",
            "csv",
        ]);
        assert_eq!(found.lines().count(), 2, "{found}");
        assert!(found.contains(&format!("name {id}")), "{found}");
        cloud.server.proxy.take_log()
    })
}

#[test]
fn a_question_about_a_hundred_tables_takes_few_requests() {
    let Some(cloud) = Cloud::start() else { return };
    for table in 0..100 {
        cloud.server.put(&format!("t/{table:02}.parquet"), &parquet_of(table, 2000));
    }
    cloud.works(["index", "build", "s3://bucket/t/", "-o", INDEX]);
    cloud.server.proxy.set_latency(std::time::Duration::from_millis(20));
    for id in [123_456, 7, 199_999] {
        cloud.forget();
        let [cold, warm] = requests(&cloud, id);
        assert!(cold.len() <= 10, "{cold:#?}");
        assert!(warm.len() <= 3, "{warm:#?}");
    }
}

#[test]
fn requests_at_the_same_time_are_several_and_not_very_many() {
    let Some(cloud) = Cloud::start() else { return };
    for table in 0..40 {
        cloud.server.put(&format!("t/{table:02}.parquet"), &parquet_of(table, 2000));
    }
    cloud.server.put("t/large.parquet", &parquet_of(1000, 1_000_000));
    cloud.server.proxy.set_latency(std::time::Duration::from_millis(20));
    cloud.server.proxy.take_most_open();
    // Sixteen for each thread, of which there is one for each processor.
    let most = 16 * std::thread::available_parallelism().unwrap().get();
    cloud.works(["index", "build", "s3://bucket/t/", "-o", INDEX]);
    let building = cloud.server.proxy.take_most_open();
    assert!((2..=most).contains(&building), "{building} of at most {most}");
    cloud.forget();
    // Rows of all tables.
    cloud.works(["index", "find", INDEX, "kind >= 0", "--count"]);
    let asking = cloud.server.proxy.take_most_open();
    assert!((2..=most).contains(&asking), "{asking} of at most {most}");
}

#[test]
fn of_large_columns_only_pieces_are_requested() {
    let Some(cloud) = Cloud::start() else { return };
    cloud.server.put("t/00.parquet", &parquet_of(0, 1_000_000));
    let build = |columns: &str| {
        let table = "s3://bucket/t/00.parquet";
        cloud.works(["index", "build", table, "-o", INDEX, "--columns", columns]);
    };
    build("id,kind,time");
    // With many segments, all of a column is too much.
    for table in 0..8 {
        let key = format!("t/more-{table}.parquet");
        cloud.server.put(&key, &parquet_of(200_000 + table, 10));
        cloud.works(["index", "append", INDEX, &url(&key)]);
    }
    cloud.forget();
    let [cold, warm] = requests(&cloud, 654_321);
    // A column comes with what is read first of it; the others are for the pages of a table of 34 MB.
    let of_index = cold.iter().filter(|line| line.contains("t.ibx")).count();
    assert!(of_index <= 5 && cold.len() <= 12, "{cold:#?}");
    assert!(warm.len() <= 3, "{warm:#?}");
    let requested: u64 = cold.iter().filter_map(|line| range_bytes(line)).sum();
    let index = cloud.server.get("t/t.ibx").len() as u64;
    assert!(index > 3_000_000 && requested < index / 2, "{requested} of {index}: {cold:#?}");
    // An index that is replaced while it is read: the new one answers, and what is known of the old one is not used.
    let before = cloud.server.get("t/t.ibx");
    build("id,kind");
    let after = cloud.server.get("t/t.ibx");
    for number in 1..4 {
        cloud.forget();
        cloud.server.put("t/t.ibx", &before);
        cloud.server.put_at(number, "t/t.ibx", &after);
        let [cold, _] = requests(&cloud, 777_777);
        assert!(cold.len() > number, "{cold:#?}");
    }
}

/// The bytes that a request asks for: `GET /bucket/key bytes=0-63`.
fn range_bytes(line: &str) -> Option<u64> {
    let (start, end) = line.split_once("t.ibx bytes=")?.1.split_once('-')?;
    let end: u64 = end.parse().ok()?;
    Some(start.parse::<u64>().map_or(end, |start| end + 1 - start))
}

#[test]
fn credentials_come_from_the_environment_or_a_profile_and_are_never_shown() {
    let Some(cloud) = three_tables() else { return };
    cloud.scratch.write(
        "credentials",
        "[work]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = hunter3hunter3\n",
    );
    let mut command = cloud.command(["index", "find", INDEX, "id = 1", "--count"]);
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    command.env("AWS_SHARED_CREDENTIALS_FILE", cloud.scratch.path("credentials"));
    let by_profile = run(command.env("AWS_PROFILE", "work"));
    assert_eq!(by_profile.stdout.trim(), "1", "{}", by_profile.stderr);
    let nobody = run(command.env("AWS_PROFILE", "nobody"));
    assert!(nobody.stderr.contains("no profile nobody"), "{}", nobody.stderr);
    // Without leave to, nothing is sent unencrypted.
    let plain = run(cloud.command(["index", "info", INDEX]).env_remove("AWS_ALLOW_HTTP"));
    assert!(plain.stderr.contains("AWS_ALLOW_HTTP"), "{}", plain.stderr);
    // Whatever goes wrong.
    let mut shown = nobody.stderr + &plain.stderr;
    for fault in [Fault::Status(403), Fault::Status(400), Fault::Status(500), Fault::Reset] {
        cloud.server.proxy.fail_always(Some(fault));
        for args in
            [["index", "info", INDEX], ["index", "compact", INDEX], ["index", "verify", INDEX]]
        {
            let run = run(cloud.command(args).env("AWS_SESSION_TOKEN", "hunter4hunter4"));
            assert_eq!(run.status, 2);
            shown += &run.stderr;
        }
        cloud.server.proxy.fail_always(None);
    }
    shown += &cloud.run(["index", "info", "s3://AKIAURL:hunter5@bucket/t/t.ibx"]).stderr;
    shown +=
        &cloud.run(["index", "info", "https://127.0.0.1/t.ibx?X-Amz-Signature=hunter6"]).stderr;
    assert!(!shown.contains("hunter") && !shown.contains("AKIA"), "{shown}");
    for file in std::fs::read_dir(cloud.scratch.path("cache")).unwrap() {
        let content = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!content.windows(6).any(|window| window == b"hunter"));
    }
}
