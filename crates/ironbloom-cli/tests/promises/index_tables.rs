//! `ironbloom index` on tables as people have them, and its answers in the forms that other programs read.

use std::process::Stdio;
use std::sync::Arc;

use crate::program::Scratch;
use ironbloom_index::arrow::array::{
    ArrayRef, AsArray as _, Float32Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray, TimestampMicrosecondArray,
};
use ironbloom_index::arrow::datatypes::{DataType, Field, Int32Type, Int64Type};
use ironbloom_index::arrow::ipc::reader::StreamReader;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

fn write_parquet(scratch: &Scratch, name: &str, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(scratch.path(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Output of `find`.
#[track_caller]
fn find<const N: usize>(scratch: &Scratch, args: [&str; N]) -> String {
    let args = ["index", "find", "t.ibx"].into_iter().chain(args);
    let output = scratch.command(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code < 2), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

// ------------------------------------------------------------------------------------------- columns in names of folders

#[test]
fn tables_are_dropped_by_the_names_of_their_folders() {
    let scratch = Scratch::new();
    for country in ["SE", "NO", "__HIVE_DEFAULT_PARTITION__"] {
        for day in ["2026-01-01", "2026-01-02"] {
            let folder = format!("lake/country={country}/day={day}");
            std::fs::create_dir_all(scratch.path(&folder)).unwrap();
            scratch.write(&format!("{folder}/t.csv"), "id,n\n1,10\n2,20\n");
        }
    }
    scratch.run(["index", "build", "lake", "-o", "t.ibx"]).succeeds();
    let left = || find(&scratch, ["id = 1", "--select", "country,day", "--format", "csv"]);
    let header = "country,day\n";
    scratch
        .run(["index", "drop", "t.ibx", "--where", "country = 'SE' and day < '2026-01-02'"])
        .succeeds();
    let rest = "NO,2026-01-01\nNO,2026-01-02\nSE,2026-01-02\n,2026-01-01\n,2026-01-02\n";
    assert_eq!(left(), format!("{header}{rest}"));
    // What is unknown is not dropped: null is neither SE nor another country.
    scratch.run(["index", "drop", "t.ibx", "--where", "country <> 'NO'"]).succeeds();
    let rest = "NO,2026-01-01\nNO,2026-01-02\n,2026-01-01\n,2026-01-02\n";
    assert_eq!(left(), format!("{header}{rest}"));
    scratch.run(["index", "drop", "t.ibx", "--where", "country is null"]).succeeds();
    assert_eq!(left(), format!("{header}NO,2026-01-01\nNO,2026-01-02\n"));
    scratch.run(["index", "verify", "t.ibx", "--tables"]).succeeds();
    scratch.refuses(
        ["index", "drop", "t.ibx", "--where", "country = 'SE'"],
        "",
        "t.ibx: no table is in folders where country = 'SE'",
    );
    scratch.refuses(
        ["index", "drop", "t.ibx", "--where", "id = 1"],
        "",
        "--where is about the names of folders (country, day): no column id",
    );
    // Dropped folders can be added again, and the last ones dropped.
    scratch.run(["index", "append", "t.ibx", "lake/country=SE/day=2026-01-01"]).succeeds();
    assert_eq!(left(), format!("{header}NO,2026-01-01\nNO,2026-01-02\nSE,2026-01-01\n"));
    scratch.run(["index", "drop", "t.ibx", "--where", "day is not null"]).succeeds();
    scratch.refuses(["index", "find", "t.ibx", "id = 1"], "", "t.ibx: there is no table in it");
    scratch.write("plain.csv", "id\n1\n");
    scratch.run(["index", "build", "plain.csv", "-o", "plain.ibx"]).succeeds();
    scratch.refuses(
        ["index", "drop", "plain.ibx", "--where", "id = 1"],
        "",
        "plain.ibx: its tables are not in folders such as country=SE",
    );
}

// ---------------------------------------------------------------------------------------------------------- time zones

#[test]
fn timestamps_of_all_zones_are_shown_and_found() {
    const NOON: i64 = 1_717_243_200_000_000; // 2024-06-01T12:00:00Z
    let scratch = Scratch::new();
    let at = |zone: &str| {
        let array = TimestampMicrosecondArray::from(vec![NOON, NOON + 1, -1]).with_timezone(zone);
        Arc::new(array) as ArrayRef
    };
    let columns = vec![
        ("oslo", at("Europe/Oslo")),
        ("utc", at("UTC")),
        ("offset", at("-03:30")),
        ("kolkata", at("Asia/Kolkata")),
    ];
    write_parquet(&scratch, "t.parquet", columns);
    scratch.run(["index", "build", "t.parquet", "-o", "t.ibx"]).succeeds();
    let wanted = "oslo,utc,offset,kolkata\n2024-06-01T14:00:00+02:00,2024-06-01T12:00:00Z,\
                  2024-06-01T08:30:00-03:30,2024-06-01T17:30:00+05:30\n";
    for condition in [
        "oslo = '2024-06-01 14:00'",
        "oslo = '2024-06-01T14:00:00+02:00'",
        "oslo = '2024-06-01T12:00:00Z'",
        "oslo = '2024-06-01 08:00 America/New_York'",
        "utc = '2024-06-01 12:00'",
        "\"offset\" = '2024-06-01 08:30'",
        "kolkata = '2024-06-01 17:30'",
        "oslo >= '2024-06-01' and oslo <= '2024-06-01 14:00'",
    ] {
        assert_eq!(find(&scratch, [condition, "--format", "csv"]), wanted, "{condition}");
    }
    let json = find(&scratch, ["utc < '1970-01-01'", "--format", "jsonl", "--select", "oslo,utc"]);
    assert_eq!(
        json,
        "{\"oslo\":\"1970-01-01T00:59:59.999999+01:00\",\"utc\":\"1969-12-31T23:59:59.999999Z\"}\n"
    );
    let run = scratch.run(["index", "find", "t.ibx", "oslo = '2024-10-27 02:30'"]).ends_with(2);
    assert!(run.stderr.contains("oslo") && run.stderr.contains("twice"), "{}", run.stderr);
}

// ----------------------------------------------------------------------------------------------------------------- CSV

#[test]
fn csv_is_read_as_the_flags_say_and_the_index_remembers_them() {
    let scratch = Scratch::new();
    scratch.write("t.txt", "zip;city\n01234;'a;b'\nNA;Oslo\nbad\n00007;Rome\n");
    let build = [
        "index",
        "build",
        "t.txt",
        "-o",
        "t.ibx",
        "--delimiter",
        ";",
        "--quote",
        "'",
        "--null",
        "NA",
        "--all-text",
        "--bad-rows",
        "skip",
    ];
    let run = scratch.run(build).succeeds();
    assert!(run.stderr.contains("t.txt: 1 bad row skipped"), "{}", run.stderr);
    assert_eq!(find(&scratch, ["zip = '01234'", "--format", "csv"]), "zip,city\n01234,a;b\n");
    assert_eq!(
        find(&scratch, ["zip is null", "--select", "city", "--format", "csv"]),
        "city\nOslo\n"
    );
    // What is added later is read in the same way, and so is what the file grows by.
    scratch.write("u.txt", "zip;city\n01234;'c;d'\n");
    scratch.run(["index", "append", "t.ibx", "u.txt"]).succeeds();
    scratch.write("t.txt", "zip;city\n01234;'a;b'\nNA;Oslo\nbad\n00007;Rome\nworse\n01234;'e;f'\n");
    let stale = scratch.run(["index", "find", "t.ibx", "zip = '01234'"]).ends_with(2);
    assert!(stale.stderr.starts_with("error: append: "), "{}", stale.stderr);
    assert!(stale.hint().contains("index append"), "{}", stale.stderr);
    let run = scratch.run(["index", "append", "t.ibx", "t.txt"]).succeeds();
    assert!(run.stderr.contains("t.txt: 2 bad rows skipped"), "{}", run.stderr);
    assert_eq!(
        find(&scratch, ["zip = '01234'", "--select", "city", "--format", "csv"]),
        "city\na;b\ne;f\nc;d\n"
    );
    for wrong in [["--delimiter", "ab"], ["--schema", "zip"], ["--schema", "zip:zap"]] {
        let run = scratch
            .run(["index", "build", "t.txt", "-o", "new.ibx", wrong[0], wrong[1]])
            .ends_with(2);
        assert!(run.stderr.contains(wrong[0]), "{}", run.stderr);
    }
    scratch.write("v.txt", "zip;n\n01234;1\nx;2\n");
    let strict =
        ["index", "build", "v.txt", "-o", "v.ibx", "--delimiter", ";", "--schema", "zip:int"];
    let run = scratch.run(strict).ends_with(2);
    assert!(run.stderr.contains("v.txt: line 3"), "{}", run.stderr);
}

#[test]
fn a_quote_that_is_never_closed_is_an_error() {
    let scratch = Scratch::new();
    scratch.write("t.csv", "a,b\n1,2\n3,\"4\n5,6\n");
    let run = scratch.run(["index", "build", "t.csv", "-o", "t.ibx"]).ends_with(2);
    assert!(
        run.stderr.contains("t.csv: line 3: has a quote that is never closed"),
        "{}",
        run.stderr
    );
}

// -------------------------------------------------------------------------------------------------------- which tables

#[test]
fn folders_patterns_and_lists_stand_for_their_tables() {
    let scratch = Scratch::new();
    for folder in ["logs", "logs/a", "logs/b", "logs/_tmp"] {
        std::fs::create_dir(scratch.path(folder)).unwrap();
    }
    for (number, name) in
        ["logs/a/1.csv", "logs/a/2.csv", "logs/b/1.csv", "logs/b/note.txt", "logs/_tmp/3.csv"]
            .into_iter()
            .enumerate()
    {
        scratch.write(name, format!("n\n{number}\n"));
    }
    let tables = || {
        let info = scratch.run(["index", "info", "t.ibx", "--json"]).succeeds().json();
        let tables = info["tables"].as_array().unwrap().clone();
        tables.iter().map(|t| t["table"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    scratch.run(["index", "build", "logs", "-o", "t.ibx"]).succeeds();
    assert_eq!(tables(), ["logs/a/1.csv", "logs/a/2.csv", "logs/b/1.csv"]);
    scratch.run(["index", "build", "logs/*/1.csv", "-o", "t.ibx"]).succeeds();
    assert_eq!(tables(), ["logs/a/1.csv", "logs/b/1.csv"]);
    scratch.run(["index", "append", "t.ibx", "logs/a/?.csv"]).ends_with(2); // one is there already
    scratch
        .run_with(["index", "build", "-", "-o", "t.ibx"], "logs/b/1.csv\nlogs/a/2.csv\n")
        .succeeds();
    assert_eq!(tables(), ["logs/b/1.csv", "logs/a/2.csv"]);
    let none = scratch.run(["index", "build", "nix*", "-o", "u.ibx"]).ends_with(2);
    assert!(none.stderr.contains("nix*: nothing matches"), "{}", none.stderr);
    std::fs::create_dir(scratch.path("empty")).unwrap();
    let none = scratch.run(["index", "build", "empty", "-o", "u.ibx"]).ends_with(2);
    assert!(none.stderr.contains("empty: no table in this folder"), "{}", none.stderr);
}

// -------------------------------------------------------------------------------------------------------------- output

fn nested() -> Scratch {
    let scratch = Scratch::new();
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1), None]),
        Some(vec![]),
        None,
    ]);
    let text: ArrayRef = Arc::new(StringArray::from(vec![Some("x,y"), Some(""), None]));
    let fields: Vec<(Arc<Field>, ArrayRef)> = vec![
        (Arc::new(Field::new("t", DataType::Utf8, true)), text.clone()),
        (
            Arc::new(Field::new("f", DataType::Float32, true)),
            Arc::new(Float32Array::from(vec![0.5, 1.0, 2.0])),
        ),
    ];
    write_parquet(
        &scratch,
        "t.parquet",
        vec![
            ("id", Arc::new(Int64Array::from(vec![1, 2, 3]))),
            ("a,b", text),
            ("list", Arc::new(list)),
            ("struct", Arc::new(StructArray::from(fields))),
        ],
    );
    scratch
        .run(["index", "build", "t.parquet", "-o", "t.ibx", "--columns", "id,\"a,b\""])
        .succeeds();
    scratch
}

#[test]
fn nested_values_are_json_and_null_is_not_the_empty_text() {
    let scratch = nested();
    assert_eq!(
        find(&scratch, ["id > 0", "--format", "csv", "--select", "\"a,b\",list,struct"]),
        "\"a,b\",list,struct\n\
         \"x,y\",\"[1,null]\",\"{\"\"t\"\":\"\"x,y\"\",\"\"f\"\":0.5}\"\n\
         \"\",[],\"{\"\"t\"\":\"\"\"\",\"\"f\"\":1.0}\"\n\
         ,,\"{\"\"t\"\":null,\"\"f\"\":2.0}\"\n"
    );
    let lines = find(&scratch, ["id = 1", "--format", "jsonl"]);
    let line: serde_json::Value = serde_json::from_str(&lines).unwrap();
    let wanted = serde_json::json!({
        "id": 1, "a,b": "x,y", "list": [1, null], "struct": {"t": "x,y", "f": 0.5}
    });
    assert_eq!(line, wanted);
}

#[test]
fn a_limit_ends_the_search() {
    let scratch = nested();
    assert_eq!(
        find(&scratch, ["id > 0", "--limit", "2", "--select", "id", "--format", "csv"]),
        "id\n1\n2\n"
    );
    scratch.run(["index", "find", "t.ibx", "id > 0", "--limit", "0"]).ends_with(2);
}

#[test]
fn arrow_and_parquet_have_the_rows_and_types_of_the_tables() {
    let scratch = nested();
    // A second table with a narrower integer: it is widened, as the first table has it.
    let text: ArrayRef = Arc::new(StringArray::from(vec!["z"]));
    let id: ArrayRef = Arc::new(ironbloom_index::arrow::array::Int32Array::from(vec![4]));
    write_parquet(&scratch, "u.parquet", vec![("id", id), ("a,b", text)]);
    scratch.run(["index", "append", "t.ibx", "u.parquet"]).succeeds();
    let bytes = |format: &str, condition: &str| {
        let args =
            ["index", "find", "t.ibx", condition, "--select", "id,\"a,b\"", "--format", format];
        let output = scratch.command(args).stdout(Stdio::piped()).output().unwrap();
        assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
        output.stdout
    };
    let check = |batches: Vec<RecordBatch>, wanted: &[i64]| {
        let ids = batches.iter().flat_map(|batch| {
            assert_eq!(batch.schema().field(1).name(), "a,b");
            batch.column(0).as_primitive::<Int64Type>().values().to_vec()
        });
        assert_eq!(ids.collect::<Vec<_>>(), wanted);
    };
    for (condition, wanted) in [("id > 1", &[2, 3, 4][..]), ("id > 9", &[])] {
        let stream = bytes("arrow", condition);
        let stream = StreamReader::try_new(&stream[..], None).unwrap();
        check(stream.map(|batch| batch.unwrap()).collect(), wanted);
        scratch.write("found.parquet", bytes("parquet", condition));
        let file = std::fs::File::open(scratch.path("found.parquet")).unwrap();
        let file = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        check(file.map(|batch| batch.unwrap()).collect(), wanted);
    }
}

#[test]
fn conditions_of_sql_that_are_not_supported_are_named() {
    let scratch = nested();
    for (condition, words) in [
        ("name glob '1%'", "`glob` is not supported"),
        ("abs(id) = 1", "functions are not supported"),
        ("id = \"a,b\"", "comparing two columns is not supported"),
    ] {
        let run = scratch.run(["index", "find", "t.ibx", condition]).ends_with(2);
        assert!(run.stderr.contains(words), "{condition}: {}", run.stderr);
    }
}

#[test]
fn values_of_a_file_are_found_in_one_pass() {
    let scratch = Scratch::new();
    let rows: String = (0..20_000).map(|id| format!("{id},n{id}\n")).collect();
    scratch.write("t.csv", format!("id,name\n{rows}"));
    scratch.run(["index", "build", "t.csv", "-o", "t.ibx"]).succeeds();
    let ids: String = (0..10_000).map(|n| format!("{}\r\n", n * 7)).collect();
    scratch.write("ids.txt", ids);
    let wanted = (0..20_000).filter(|id| id % 7 == 0).count();
    let by_id = ["--values", "ids.txt", "--column", "id", "--count"];
    assert_eq!(find(&scratch, by_id), format!("{wanted}\n"));
    let names: String = (0..10_000).map(|n| format!("n{}\n", n * 7)).collect();
    let args =
        ["index", "find", "t.ibx", "id < 70", "--values", "-", "--column", "name", "--count"];
    assert_eq!(scratch.run_with(args, names).succeeds().text(), "10\n");
    scratch.write("bad.txt", "1\nseven\n");
    let args = ["index", "find", "t.ibx", "--values", "bad.txt", "--column", "id"];
    let run = scratch.run(args).ends_with(2);
    assert!(run.stderr.contains("bad.txt") && run.stderr.contains("seven"), "{}", run.stderr);
    scratch.write("none.txt", "");
    scratch.run(["index", "find", "t.ibx", "--values", "none.txt", "--column", "id"]).ends_with(1);
}

#[test]
fn ranges_and_patterns_are_answered_from_bounds_and_info_shows_them() {
    let scratch = Scratch::new();
    let rows: String = (0..20_000).map(|id| format!("{id},n{:05}\n", id / 3)).collect();
    scratch.write("t.csv", format!("id,name\n{rows}"));
    scratch.run(["index", "build", "t.csv", "-o", "t.ibx"]).succeeds();
    for (condition, count) in [
        ("id between 700 and 799", "100\n"),
        ("name like 'n00%9'", "300\n"),
        ("starts_with(name, 'n0012')", "30\n"),
        ("not (id < 19990) and name not like '%6'", "8\n"),
    ] {
        let run =
            scratch.run(["index", "find", "t.ibx", condition, "--count", "--explain"]).succeeds();
        assert_eq!(run.text(), count, "{condition}");
        let blocks = run.stderr.lines().find(|line| line.starts_with("blocks")).unwrap();
        let candidates = blocks.split_whitespace().nth(3).unwrap();
        assert!(candidates.parse::<u32>().unwrap() <= 9, "{condition}: {blocks}");
    }
    let info = scratch.run(["index", "info", "t.ibx"]).succeeds();
    assert!(info.text().contains("min and max"), "{}", info.text());
    let json = scratch.run(["index", "info", "t.ibx", "--json"]).succeeds().text();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["columns"][0]["min_and_max"].as_u64().is_some_and(|bytes| bytes > 0), "{json}");
}
