//! A private server with the extension: its own folder, a socket in it, nothing else.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ironbloom_testing::postgres::{INITDB, plain};
use ironbloom_testing::{
    Running, Scratch, Signal, Start as _, end_with_this_program, is_root, marked, signal,
};

pub(crate) use ironbloom_testing::postgres::as_user;

/// `compare(table, conditions)` answers each condition by index and by reading the whole table, in the snapshot of the
/// transaction, and fails if the answers differ. Returns how many it has compared.
const COMPARE: &str = r#"
create extension ironbloom;
create function compare(tab text, conditions text[]) returns int language plpgsql as $$
declare
    condition text; by_index record; by_table record; compared int := 0;
begin
    foreach condition in array conditions loop
        perform set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'on', true);
        execute format('select count(*) as n, coalesce(sum(hashtextextended(x::text, 0)::numeric), 0) as s from %s x where %s', tab, condition) into by_index;
        perform set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'off', true);
        execute format('select count(*) as n, coalesce(sum(hashtextextended(x::text, 0)::numeric), 0) as s from %s x where %s', tab, condition) into by_table;
        if by_index is distinct from by_table then
            raise exception 'where %: % by index, % by table', condition, by_index, by_table;
        end if;
        compared := compared + 1;
    end loop;
    perform set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true);
    return compared;
end $$;
"#;

/// The library that was built with the tests.
fn library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let library = exe.parent().unwrap().parent().unwrap().join("libironbloom.so");
    assert!(library.exists(), "please build the extension first: cargo build");
    library
}

pub(crate) struct Server {
    pub(crate) programs: PathBuf,
    pub(crate) folder: PathBuf,
    _scratch: Option<Scratch>,
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.is_running() {
            let _ = self.control(&["-m", "immediate", "stop"]);
        }
    }
}

impl Server {
    /// A new server, with a database that has the extension.
    pub(crate) fn start(name: &str) -> Self {
        // Our checksums of pages are to be seen at work.
        Self::start_with(name, false)
    }

    /// The same, with or without checksums of the server's own.
    pub(crate) fn start_with(name: &str, checksums: bool) -> Self {
        let scratch = Scratch::new(&format!("postgres-{name}"));
        let folder = scratch.path().to_owned();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("server.sh");
        let made = Command::new("bash")
            .arg(script)
            .arg(folder.join("server"))
            .arg(library())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let programs = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
        let server = Self { programs, folder, _scratch: Some(scratch) };
        server.own();
        let mut initdb = as_user(&server.programs.join("initdb"));
        initdb.args(INITDB).arg("-D").arg(server.folder.join("data"));
        // From version 18 on the server has them by default.
        let help =
            Command::new(server.programs.join("initdb")).arg("--help").output().unwrap().stdout;
        if checksums {
            initdb.arg("--data-checksums");
        } else if String::from_utf8_lossy(&help).contains("--no-data-checksums") {
            initdb.arg("--no-data-checksums");
        }
        let made = initdb.current_dir(&server.folder).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let settings = "listen_addresses = ''\nfsync = off\nshared_buffers = 32MB\nmax_wal_size = 2GB\n\
            wal_level = replica\nmax_wal_senders = 4\nmax_prepared_transactions = 4\nautovacuum = off\n";
        server.configure(settings);
        server.resume();
        server.sql(COMPARE);
        server
    }

    /// Another server over a folder of data that was made by this one's programs.
    pub(crate) fn beside(&self, name: &str) -> Self {
        Self { programs: self.programs.clone(), folder: self.folder.join(name), _scratch: None }
    }

    /// Gives everything to the user that it runs as.
    pub(crate) fn own(&self) {
        if is_root() {
            assert!(
                Command::new("chown")
                    .args(["-R", "postgres"])
                    .arg(&self.folder)
                    .status()
                    .unwrap()
                    .success()
            );
        }
    }

    pub(crate) fn configure(&self, settings: &str) {
        let file = self.folder.join("data/postgresql.conf");
        let mut text = std::fs::read_to_string(&file).unwrap();
        text.push_str(settings);
        std::fs::write(file, text).unwrap();
        self.own();
    }

    pub(crate) fn control(&self, arguments: &[&str]) -> bool {
        let mut control = as_user(&self.programs.join("pg_ctl"));
        control
            .arg("-D")
            .arg(self.folder.join("data"))
            .args(["-w", "-t", "120", "-l"])
            .arg(self.folder.join("log"));
        control.arg("-o").arg(format!("-k '{}'", self.folder.display())).args(arguments);
        marked(&mut control)
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    }

    pub(crate) fn resume(&self) {
        end_with_this_program(&self.folder.join("data"));
        assert!(self.control(&["start"]), "{}", self.log());
    }

    pub(crate) fn stop(&self) {
        assert!(self.control(&["-m", "fast", "stop"]), "{}", self.log());
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn pid(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.folder.join("data/postmaster.pid")).ok()?;
        text.lines().next().map(str::to_owned)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.pid().is_some_and(|pid| Path::new("/proc").join(pid).exists())
    }

    /// The server's processes, apart from the first.
    fn children(&self) -> Vec<String> {
        let pid = self.pid().expect("a running server");
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_whitespace().map(str::to_owned).collect()
    }

    fn end_process(&self, pid: &str) {
        // Who has ended already is no matter.
        let _ = pid.parse().map(|pid| signal(pid, Signal::KILL));
    }

    /// Ends the server without any warning, as a crash does; its processes notice and end, too.
    pub(crate) fn kill(&self) {
        let mut all = vec![self.pid().expect("a running server")];
        all.extend(self.children());
        for pid in &all {
            self.end_process(pid);
        }
        ironbloom_testing::wait_until(|| {
            all.iter().all(|pid| !Path::new("/proc").join(pid).exists())
        });
        let _ = std::fs::remove_file(self.folder.join("data/postmaster.pid"));
    }

    /// Ends one process that works for a client: the server takes that for a crash and begins again.
    pub(crate) fn kill_one(&self) {
        let pid = self.sql(
            "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
             order by random() limit 1;",
        );
        self.end_process(&pid);
        ironbloom_testing::wait_until(|| !Path::new("/proc").join(&pid).exists());
    }

    pub(crate) fn psql(&self) -> Command {
        let mut psql = plain(&self.programs.join("psql"));
        psql.args([
            "-X",
            "-q",
            "-At",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "postgres",
            "-d",
            "postgres",
            "-h",
        ]);
        psql.arg(&self.folder).current_dir(&self.folder);
        psql
    }

    /// What the server prints, or its error.
    pub(crate) fn try_sql(&self, sql: &str) -> Result<String, String> {
        let mut child = self.session(sql);
        drop(child.stdin.take());
        let done = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
    }

    /// Warnings and errors of a script that ends well.
    pub(crate) fn warnings(&self, sql: &str) -> String {
        let done = self.session(sql).wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{printed}");
        printed
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        self.try_sql(sql).unwrap_or_else(|error| {
            panic!("{error}\n{}", sql.chars().take(2_000).collect::<String>())
        })
    }

    /// Makes a collation of ICU. False if this server has none, as some builds.
    pub(crate) fn make_collation(&self, name: &str, locale: &str, deterministic: bool) -> bool {
        let made = self.try_sql(&format!(
            "create collation {name} (provider = icu, locale = '{locale}', deterministic = {deterministic});"
        ));
        match made {
            Err(error) if error.contains("ICU is not supported") => {
                eprintln!("SKIPPED: this server has no collations of ICU");
                false
            }
            made => made.map(|_| true).unwrap(),
        }
    }

    /// A session that works through a script at its own pace.
    pub(crate) fn session(&self, sql: &str) -> Running {
        self.session_of(std::iter::once(sql.to_owned()))
    }

    /// A session that works through scripts, one after the other, until it is ended.
    pub(crate) fn session_of(
        &self,
        scripts: impl Iterator<Item = String> + Send + 'static,
    ) -> Running {
        let mut psql = self.psql();
        let mut child =
            psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).start();
        let mut input = child.stdin.take().unwrap();
        std::thread::spawn(move || {
            for script in scripts {
                // A session that has ended with an error does not read the rest.
                if input.write_all(script.as_bytes()).is_err() {
                    break;
                }
            }
        });
        child
    }

    /// Compares answers for these conditions; says how many.
    pub(crate) fn compare(&self, table: &str, conditions: &[&str]) -> usize {
        let list: Vec<String> =
            conditions.iter().map(|condition| format!("$q${condition}$q$")).collect();
        let compared = self.sql(&format!(
            "begin isolation level repeatable read; select compare('{table}', array[{}]); commit;",
            list.join(",")
        ));
        compared.parse().unwrap()
    }
}
