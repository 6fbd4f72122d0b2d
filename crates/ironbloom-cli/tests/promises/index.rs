//! `ironbloom index`: rows by any of their columns, and what happens when tables, indexes or questions are wrong.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::process::Stdio;

use crate::program::Scratch;
use ironbloom_testing::{Running, Signal, Start as _};

/// 5,000 rows: a number of 100 values, a city of three or none, a day, a comment with quotes and line ends.
fn table() -> String {
    let mut text = String::from("id,kind,city,day,comment\n");
    for id in 0..5000 {
        let city = ["Oslo", "Bergen", "O'Hara", ""][id % 4];
        let day = format!("2024-0{}-15", 1 + id % 9);
        let _ = writeln!(text, "{id},{},{city},{day},\"row \"\"{id}\"\"\nends\"", id * 7 % 100);
    }
    text
}

fn indexed() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("t.csv", table());
    scratch.run(["index", "build", "t.csv", "-o", "t.ibx"]).succeeds();
    scratch
}

/// How many rows match.
fn count<const N: usize>(scratch: &Scratch, conditions: [&str; N]) -> u64 {
    let args = ["index", "find", "t.ibx", "--count"].into_iter().chain(conditions);
    let output = scratch.command(args).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let count = text.trim().parse().unwrap_or_else(|_| {
        panic!("{conditions:?}: {text}{}", String::from_utf8_lossy(&output.stderr))
    });
    assert_eq!(output.status.code(), Some(i32::from(count == 0)), "{conditions:?}");
    count
}

/// That a run fails with a message that has these words, and changes no file here.
#[track_caller]
fn refuses<const N: usize>(scratch: &Scratch, args: [&str; N], words: &str) {
    let run = scratch.refuses(args, "", "");
    assert!(run.stderr.contains(words), "{words:?} in {}", run.stderr);
}

// ------------------------------------------------------------------------------------------------------------- answers

#[test]
fn conditions_find_the_rows_that_a_look_at_all_rows_finds() {
    let scratch = indexed();
    let naive = |keep: &dyn Fn(u64) -> bool| (0..5000).filter(|&id| keep(id)).count() as u64;
    let kind = |id: u64| id * 7 % 100;
    assert_eq!(count(&scratch, ["id = 4711"]), 1);
    assert_eq!(count(&scratch, ["id = 5000"]), 0);
    assert_eq!(count(&scratch, ["kind = 63"]), naive(&|id| kind(id) == 63));
    assert_eq!(
        count(&scratch, ["kind = 63", "city = 'Oslo'"]),
        naive(&|id| kind(id) == 63 && id % 4 == 0)
    );
    assert_eq!(
        count(&scratch, ["kind = 3", "id = 9", "--or"]),
        naive(&|id| kind(id) == 3 || id == 9)
    );
    assert_eq!(
        count(&scratch, ["city = 'O''Hara' and kind in (1, 2, 700)"]),
        naive(&|id| id % 4 == 2 && (1..=2).contains(&kind(id)))
    );
    assert_eq!(count(&scratch, ["city is null", "id < 100"]), 25);
    assert_eq!(count(&scratch, ["city is not null", "id < 100"]), 75);
    assert_eq!(count(&scratch, ["city != 'Oslo'", "id < 100"]), 50);
    assert_eq!(count(&scratch, ["not (city = 'Oslo' or id >= 100)"]), 50);
    assert_eq!(count(&scratch, ["day = '2024-03-15'", "id between 0 and 17"]), 2);
    assert_eq!(count(&scratch, ["\"comment\" = 'row \"7\"\nends'"]), 1);
}

#[test]
fn rows_are_shown_as_a_table_as_csv_and_as_json() {
    let scratch = indexed();
    let show = |format: &str| {
        scratch.run([
            "index",
            "find",
            "t.ibx",
            "id in (6, 7)",
            "--select",
            "city,id,comment",
            "--format",
            format,
        ])
    };
    let table = show("table").succeeds().text();
    assert_eq!(
        table,
        "city    id  comment\nO'Hara   6  row \"6\"\\nends\n–        7  row \"7\"\\nends\n\n2 rows\n"
    );
    let csv = show("csv").succeeds().text();
    assert_eq!(
        csv,
        "city,id,comment\nO'Hara,6,\"row \"\"6\"\"\nends\"\n,7,\"row \"\"7\"\"\nends\"\n"
    );
    let json = show("json").succeeds().text();
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines[0],
        serde_json::json!({"city": "O'Hara", "id": 6, "comment": "row \"6\"\nends"})
    );
    assert_eq!(lines[1]["city"], serde_json::Value::Null);
    // Nothing found: an empty table with its head, and status 1.
    let none = scratch.run(["index", "find", "t.ibx", "id = 77777", "--format", "csv"]);
    assert_eq!(none.ends_with(1).text(), "id,kind,city,day,comment\n");
}

#[test]
fn explain_tells_what_was_read() {
    let scratch = indexed();
    let run =
        scratch.run(["index", "find", "t.ibx", "id = 4711", "--count", "--explain"]).succeeds();
    for words in ["KiB read", "10 considered", "1 candidate (", "1 match", "opening"] {
        assert!(run.stderr.contains(words), "{words} in {}", run.stderr);
    }
    // A search that ends in the middle of a table has read that much of it.
    let run = scratch.run(["index", "find", "t.ibx", "id < 100", "--limit", "3", "--explain"]);
    let run = run.succeeds();
    assert!(!run.stderr.contains(" 0 compared, 0 match"), "{}", run.stderr);
}

#[test]
fn a_column_that_is_not_indexed_is_compared_all_the_same() {
    let scratch = Scratch::new();
    scratch.write("t.csv", table());
    scratch.run(["index", "build", "t.csv", "-o", "t.ibx", "--columns", "kind,city"]).succeeds();
    assert_eq!(count(&scratch, ["id = 4711"]), 1);
    assert_eq!(count(&scratch, ["id = 4711", "kind = 77"]), 1);
    assert_eq!(count(&scratch, ["id = 4711", "kind = 78"]), 0);
    assert_eq!(count(&scratch, ["id = 4711", "kind = 78", "--or"]), 51);
}

// ----------------------------------------------------------------------------------------------------- several tables

#[test]
fn tables_come_and_go() {
    let scratch = indexed();
    std::fs::create_dir(scratch.path("more")).unwrap();
    scratch.write("more/u.csv", table().replace("Bergen", "Tromsø"));
    scratch.run(["index", "append", "t.ibx", "more/u.csv"]).succeeds();
    assert_eq!(count(&scratch, ["id = 4711"]), 2);
    assert_eq!(count(&scratch, ["city = 'Tromsø'", "id < 8"]), 2);
    scratch.run(["index", "compact", "t.ibx"]).succeeds();
    assert_eq!(count(&scratch, ["id = 4711"]), 2);
    let info = scratch.run(["index", "info", "t.ibx", "--json"]).succeeds().json();
    assert_eq!(info["rows"], 10_000);
    assert_eq!(info["tables"][1]["table"], "more/u.csv");
    assert_eq!(info["columns"].as_array().unwrap().len(), 5);
    refuses(&scratch, ["index", "append", "t.ibx", "t.csv"], "is already in the index");
    scratch.run(["index", "drop", "t.ibx", "t.csv"]).succeeds();
    assert_eq!(count(&scratch, ["id = 4711"]), 1);
    assert_eq!(count(&scratch, ["city = 'Bergen'"]), 0);
    refuses(&scratch, ["index", "drop", "t.ibx", "t.csv"], "t.ibx: no table t.csv");
    scratch.run(["index", "verify", "t.ibx"]).succeeds();
}

#[test]
fn a_table_that_has_grown_is_followed_and_a_changed_one_is_not() {
    let scratch = indexed();
    let more = "5000,1,Oslo,2024-01-15,x\n5001,2,,2024-01-16,y\n";
    scratch.write("t.csv", table() + more);
    refuses(&scratch, ["index", "find", "t.ibx", "id = 5001"], "index append INDEX");
    scratch.run(["index", "append", "t.ibx", "t.csv"]).succeeds();
    assert_eq!(count(&scratch, ["id = 5001"]), 1);
    assert_eq!(count(&scratch, ["id = 4711"]), 1);
    assert_eq!(count(&scratch, ["kind = 1"]), 51);
    scratch.run(["index", "compact", "t.ibx"]).succeeds();
    assert_eq!(count(&scratch, ["kind = 1"]), 51);
    assert_eq!(count(&scratch, ["city is null", "id > 4996"]), 2);
    // Nothing new, something else, another type, a line that went on.
    refuses(&scratch, ["index", "append", "t.ibx", "t.csv"], "t.csv");
    for changed in [
        table().replacen("4711,", "4712,", 1) + more + "5002,3,,2024-01-15,z\n",
        table() + more + "five thousand,3,,2024-01-15,z\n",
    ] {
        scratch.write("t.csv", changed);
        refuses(&scratch, ["index", "append", "t.ibx", "t.csv"], "t.csv");
    }
    scratch.write("u.csv", "a,b\n1,2\n3,4");
    scratch.run(["index", "build", "u.csv", "-o", "u.ibx"]).succeeds();
    scratch.write("u.csv", "a,b\n1,2\n3,45\n6,7\n");
    refuses(&scratch, ["index", "append", "u.ibx", "u.csv"], "u.csv");
}

#[test]
fn a_folder_with_table_and_index_can_be_moved() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("a")).unwrap();
    scratch.write("a/t.csv", table());
    scratch.run(["index", "build", "a/t.csv", "-o", "a/t.ibx"]).succeeds();
    std::fs::rename(scratch.path("a"), scratch.path("b")).unwrap();
    let found = scratch.run(["index", "find", "b/t.ibx", "id = 4711", "--count"]);
    assert_eq!(found.succeeds().text(), "1\n");
}

// ----------------------------------------------------------------------------------------------------------- bad input

#[test]
fn wrong_questions_get_a_clear_answer() {
    let scratch = indexed();
    let refused = |condition: &str, words: &[&str]| {
        let run = scratch.run(["index", "find", "t.ibx", condition]).ends_with(2);
        for word in words {
            assert!(run.stderr.contains(word), "{word} in {}", run.stderr);
        }
        assert_eq!(run.text(), "");
    };
    refused("idd = 5", &["idd", "id"]);
    refused("id = 'abc'", &["id", "Int64", "abc"]);
    refused("id = ", &["id ="]);
    refused("id", &["id"]);
    refused("day = '2024-13-01'", &["day", "2024-13-01"]);
    refuses(&scratch, ["index", "find", "t.ibx", "id = 1", "--select", "nix"], "");
    refuses(&scratch, ["index", "find", "none.ibx", "id = 1"], "none.ibx");
    refuses(&scratch, ["index", "find", "t.csv", "id = 1"], "t.csv");
}

#[test]
fn wrong_tables_are_refused_by_name() {
    let scratch = indexed();
    scratch.write("empty.csv", "");
    scratch.write("head.csv", "a,b\n");
    scratch.write("ragged.csv", "a,b\n1,2\n3\n");
    scratch.write("t.txt", "hello");
    scratch.write("bad.parquet", "PAR1 and then nothing");
    for (table, words) in [
        ("none.csv", "none.csv"),
        ("empty.csv", "empty.csv"),
        ("ragged.csv", "ragged.csv: line 3"),
        ("t.txt", "t.txt"),
        ("bad.parquet", "bad.parquet"),
    ] {
        refuses(&scratch, ["index", "build", table, "-o", "new.ibx"], words);
        assert!(!scratch.exists("new.ibx"));
    }
    refuses(&scratch, ["index", "build", "t.csv", "-o", "new.ibx", "--columns", "nix"], "t.csv");
    refuses(&scratch, ["index", "build", "t.csv", "-o", "new.ibx", "--block-rows", "500"], "");
    refuses(&scratch, ["index", "build", "t.csv", "-o", "t.csv"], "t.csv");
    // A table without rows is a table.
    scratch.run(["index", "build", "head.csv", "-o", "head.ibx"]).succeeds();
    scratch.run(["index", "find", "head.ibx", "a is null"]).ends_with(1);
}

#[test]
fn a_changed_table_is_refused_and_not_answered_wrongly() {
    let scratch = indexed();
    let grown = table() + "5000,1,Oslo,2024-01-15,x\n";
    let changed = table().replacen("4711,", "4712,", 1);
    for (content, what) in [(grown, "append: "), (changed, "rebuild: ")] {
        scratch.write("t.csv", content);
        let run = scratch.run(["index", "find", "t.ibx", "id = 99999"]).ends_with(2);
        assert!(run.stderr.contains(what) && run.stderr.contains("t.csv"), "{}", run.stderr);
    }
    std::fs::remove_file(scratch.path("t.csv")).unwrap();
    refuses(&scratch, ["index", "find", "t.ibx", "id = 1"], "t.csv");
}

/// While the program waits for its output to be read, its table is cut off.
#[test]
fn a_table_that_is_cut_off_during_a_search_is_an_error_and_no_signal() {
    let scratch = Scratch::new();
    // More than eight threads read ahead.
    let lines: String = (0..1_200_000).map(|id| format!("{id},x\n")).collect();
    scratch.write("t.csv", format!("id,text\n{lines}"));
    scratch.run(["index", "build", "t.csv", "-o", "t.ibx"]).succeeds();
    let mut find = scratch
        .command(["index", "find", "t.ibx", "id >= 0", "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .start();
    // Far more comes out at first than a pipe holds, and far less than everything.
    let mut shown = vec![0; 100];
    find.stdout.as_mut().unwrap().read_exact(&mut shown).unwrap();
    OpenOptions::new().write(true).open(scratch.path("t.csv")).unwrap().set_len(50).unwrap();
    let output = find.wait_with_output().unwrap();
    let (status, message) = (output.status, String::from_utf8_lossy(&output.stderr));
    assert_eq!(status.code(), Some(2), "{status}: {message}");
    assert!(message.starts_with("error: "), "{message}");
    assert!(message.contains("t.csv") && message.contains("cut off"), "{message}");
}

#[test]
fn a_damaged_index_is_refused_by_the_name_of_its_part() {
    let scratch = indexed();
    let whole = scratch.read("t.ibx");
    for at in (0..whole.len()).step_by(whole.len() / 50) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        scratch.write("t.ibx", &bytes);
        let verify = scratch.run(["index", "verify", "t.ibx"]);
        assert!(
            verify.status == 2 && verify.stderr.contains("t.ibx"),
            "byte {at}: {}",
            verify.stderr
        );
        // An answer, if there is one, is right.
        let find = scratch.run(["index", "find", "t.ibx", "id = 4711", "--count"]);
        assert!(find.status == 2 || find.text() == "1\n", "byte {at}: {}", find.text());
    }
}

/// The system's message about a missing file is printed once.
#[test]
fn a_missing_file_is_named_once() {
    let scratch = indexed();
    let missing = "No such file or directory";
    for args in [
        &["index", "find", "none.ibx", "id = 1"][..],
        &["index", "build", "none.csv", "-o", "u.ibx"],
        &["index", "append", "t.ibx", "none.parquet"],
        &["index", "info", "none.ibx"],
    ] {
        let output = scratch.command(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(stderr.matches(missing).count(), 1, "{args:?}: {stderr}");
        assert!(stderr.contains("none."), "{args:?}: {stderr}");
    }
    refuses(&scratch, ["index", "build", "t.csv", "-o", "u.ibx", "--columns", "id,"], "--columns");
}

// ------------------------------------------------------------------------------------------------------------- killing

/// Runs a change of t.ibx and kills it, each time a little later. The index must then be the old one, to the byte, or the
/// new one, which has `rows` rows with number 4711.
#[cfg(unix)]
fn kill_repeatedly<const N: usize>(scratch: &Scratch, args: [&str; N], rows: u64) {
    let old = scratch.read("t.ibx");
    let mut killed = 0;
    for round in 0..30u64 {
        scratch.write("t.ibx", &old);
        let mut child = scratch.command(args).start();
        std::thread::sleep(std::time::Duration::from_micros(700 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        if scratch.read("t.ibx") == old {
            killed += 1;
        } else {
            scratch.run(["index", "verify", "t.ibx"]).succeeds();
            assert_eq!(count(scratch, ["id = 4711"]), rows, "{args:?}, round {round}");
        }
    }
    assert!(killed > 0, "{args:?}: none was killed in time");
    // One that is not killed finishes: the two can be told apart.
    scratch.write("t.ibx", &old);
    scratch.run(args).succeeds();
    assert_ne!(scratch.read("t.ibx"), old, "{args:?}");
    assert_eq!(count(scratch, ["id = 4711"]), rows, "{args:?}");
}

/// Killed at any moment, an index is the old one or the new one.
#[cfg(unix)]
#[test]
fn a_killed_change_leaves_the_old_index_or_the_new_one() {
    let scratch = indexed();
    scratch.write("u.csv", table());
    kill_repeatedly(&scratch, ["index", "append", "t.ibx", "u.csv"], 2);

    let scratch = indexed();
    scratch.write("u.csv", table());
    kill_repeatedly(&scratch, ["index", "build", "t.csv", "u.csv", "-o", "t.ibx"], 2);

    // The rows that a table has grown by are a second segment, which compacting merges with the first.
    let scratch = indexed();
    scratch.write("t.csv", table() + "5000,1,Oslo,2024-01-15,later\n");
    scratch.run(["index", "append", "t.ibx", "t.csv"]).succeeds();
    kill_repeatedly(&scratch, ["index", "compact", "t.ibx"], 1);
}

/// Without memory, every column goes to the temporary file.
#[cfg(unix)]
#[test]
fn a_killed_build_leaves_nothing_that_the_next_one_does_not_remove() {
    let scratch = indexed();
    scratch.write("u.csv", table());
    let files = scratch.files();
    let build = ["index", "build", "t.csv", "u.csv", "-o", "t.ibx", "--memory", "0"];
    kill_repeatedly(&scratch, build, 2);
    assert_eq!(scratch.files(), files);
}

// ----------------------------------------------------------------------------------------------------- several writers

/// A small table of which each row says where it is from.
fn part(name: &str) -> String {
    (0..50).fold("id,part\n".to_owned(), |text, id| text + &format!("{id},{name}\n"))
}

/// An index u.ibx of one part, and the files of more.
fn parts(more: std::ops::Range<u32>) -> Scratch {
    let scratch = Scratch::new();
    for name in ["first".to_owned()].into_iter().chain(more.map(|i| format!("p{i}"))) {
        scratch.write(&format!("{name}.csv"), part(&name));
    }
    scratch.run(["index", "build", "first.csv", "-o", "u.ibx"]).succeeds();
    scratch
}

fn start(scratch: &Scratch, args: &str) -> Running {
    let mut command = scratch.command(args.split(' '));
    command.stdout(Stdio::null()).stderr(Stdio::piped()).start()
}

/// Returns true if this part is in the index: all of its rows, or none.
fn has_part(scratch: &Scratch, name: &str) -> bool {
    let condition = format!("part = '{name}'");
    let run = scratch.run(["index", "find", "u.ibx", &condition, "--count"]);
    match run.text().trim() {
        "50" => true,
        "0" => false,
        other => panic!("{name}: {other}, {}", run.stderr),
    }
}

/// Nothing is left behind beside the tables and the index.
#[track_caller]
fn is_tidy(scratch: &Scratch) {
    let hidden: Vec<String> =
        scratch.files().into_iter().filter(|name| name.starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn changes_at_the_same_time_are_all_made() {
    for _ in 0..3 {
        let scratch = parts(0..8);
        scratch.run(["index", "append", "u.ibx", "p0.csv", "p1.csv"]).succeeds();
        let mut changes: Vec<String> =
            (2..8).map(|i| format!("index append u.ibx p{i}.csv")).collect();
        changes.insert(2, "index drop u.ibx p0.csv".into());
        changes.insert(4, "index compact u.ibx".into());
        let running: Vec<_> = changes.iter().map(|args| start(&scratch, args)).collect();
        for (args, child) in changes.iter().zip(running) {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        }
        assert!(!has_part(&scratch, "p0"), "dropped");
        for name in ["first", "p1", "p2", "p3", "p4", "p5", "p6", "p7"] {
            assert!(has_part(&scratch, name), "{name} is lost");
        }
        scratch.run(["index", "verify", "u.ibx"]).succeeds();
        is_tidy(&scratch);
    }
}

/// Of two that add the same rows, one does it, and the other reports an error.
#[test]
fn the_same_change_twice_at_once_is_made_once() {
    let scratch = parts(0..1);
    scratch.write("first.csv", part("first") + "50,later\n");
    for table in ["p0.csv", "first.csv"] {
        let args = format!("index append u.ibx {table}");
        let running: Vec<_> = (0..4).map(|_| start(&scratch, &args)).collect();
        let outputs: Vec<_> =
            running.into_iter().map(|run| run.wait_with_output().unwrap()).collect();
        assert_eq!(outputs.iter().filter(|output| output.status.success()).count(), 1, "{table}");
        for output in outputs.iter().filter(|output| !output.status.success()) {
            let message = String::from_utf8_lossy(&output.stderr);
            assert!(message.contains("is already in the index"), "{table}: {message}");
        }
    }
    assert!(has_part(&scratch, "p0") && has_part(&scratch, "first"));
    let later = scratch.run(["index", "find", "u.ibx", "part = 'later'", "--count"]);
    assert_eq!(later.succeeds().text(), "1\n");
}

/// Killed at any moment, a change is made or not; who reported success has made it, and a dead process holds up no other.
#[cfg(unix)]
#[test]
fn changes_of_killed_writers_take_nothing_from_the_others() {
    let scratch = parts(0..40);
    let mut done = vec!["first".to_owned()];
    let mut killed = 0;
    for round in 0..10u64 {
        let names: Vec<String> = (0..4).map(|i| format!("p{}", round * 4 + i)).collect();
        let running: Vec<_> = names
            .iter()
            .map(|name| start(&scratch, &format!("index append u.ibx {name}.csv")))
            .collect();
        std::thread::sleep(std::time::Duration::from_micros(1500 * round));
        for (i, (name, mut child)) in names.into_iter().zip(running).enumerate() {
            if i % 2 == 0 {
                child.kill().unwrap();
            }
            let output = child.wait_with_output().unwrap();
            if output.status.success() {
                done.push(name);
            } else {
                assert_eq!(i % 2, 0, "{}", String::from_utf8_lossy(&output.stderr));
                killed += 1;
            }
        }
    }
    assert!(killed > 0, "none was killed in time");
    scratch.run(["index", "compact", "u.ibx"]).succeeds();
    scratch.run(["index", "verify", "u.ibx"]).succeeds();
    for name in &done {
        assert!(has_part(&scratch, name), "{name} is lost");
    }
    is_tidy(&scratch);
}

#[test]
fn a_file_that_is_not_an_index_is_not_overwritten() {
    let scratch = parts(0..1);
    scratch.write("precious.txt", "years of work\n");
    let args = ["index", "build", "p0.csv", "-o", "precious.txt"];
    refuses(&scratch, args, "precious.txt: is not an Ironbloom index");
    // An index is, a damaged one, too, and an empty file, as mktemp makes it.
    let mut damaged = scratch.read("u.ibx");
    damaged[20] ^= 1;
    scratch.write("u.ibx", damaged);
    scratch.write("empty", "");
    for file in ["u.ibx", "u.ibx", "empty"] {
        scratch.run(["index", "build", "p0.csv", "-o", file]).succeeds();
    }
    assert!(has_part(&scratch, "p0") && !has_part(&scratch, "first"));
}

#[test]
fn what_killed_runs_have_left_is_removed_by_the_next() {
    let scratch = parts(0..1);
    let left = [".u.ibx.4711-0.tmp", ".u.ibx.4711-3.tmp", ".u.ibx.lock"];
    let others = [
        ".v.ibx.4711-0.tmp",
        ".u.ibx.1.4711-0.tmp",
        ".u.ibx.tmp",
        ".u.ibx.2024.tmp",
        "u.ibx.4711-0.tmp",
    ];
    for name in left.into_iter().chain(others) {
        scratch.write(name, "");
    }
    scratch.run(["index", "append", "u.ibx", "p0.csv"]).succeeds();
    for name in left {
        assert!(!scratch.exists(name), "{name}");
    }
    for name in others {
        assert!(scratch.exists(name), "{name} is not its own");
    }
}

// ------------------------------------------------------------------------------------------------ tables that are gone

/// Twelve tables; every row says where it is from.
fn many(count: u32) -> Scratch {
    let scratch = parts(0..count);
    let tables: Vec<String> = (0..count).map(|i| format!("p{i}.csv")).collect();
    let args = ["index", "append", "u.ibx"].into_iter().chain(tables.iter().map(String::as_str));
    assert!(scratch.command(args).stdout(Stdio::null()).status().unwrap().success());
    scratch
}

#[test]
fn more_tables_than_files_may_be_open() {
    let scratch = many(300);
    let limited = |args: &str| scratch.shell(&format!("ulimit -n 200; ironbloom index {args}"));
    assert_eq!(limited("find u.ibx \"part = 'p250'\" --count").succeeds().text(), "50\n");
    assert_eq!(limited("find u.ibx 'id = 7' --count").succeeds().text(), "301\n");
    limited("verify u.ibx --tables").succeeds();
}

#[test]
fn a_missing_or_changed_table_matters_to_those_who_need_it() {
    let scratch = many(4);
    std::fs::remove_file(scratch.path("first.csv")).unwrap();
    scratch.write("p1.csv", part("p1").replace("7,p1", "8,p1"));
    scratch.write("p2.csv", "not even a table");
    assert!(has_part(&scratch, "p0") && has_part(&scratch, "p3"));
    refuses(&scratch, ["index", "find", "u.ibx", "part = 'first'"], "first.csv: is missing");
    refuses(&scratch, ["index", "find", "u.ibx", "part = 'p1'"], "p1.csv changed");
    refuses(&scratch, ["index", "find", "u.ibx", "part = 'p2'"], "p2.csv changed");
    let skipping = |condition: &str| {
        scratch.run(["index", "find", "u.ibx", condition, "--count", "--skip-changed"])
    };
    let run = skipping("id = 7").ends_with(3);
    assert_eq!(run.text(), "2\n");
    for name in ["first.csv", "p1.csv", "p2.csv"] {
        assert_eq!(run.stderr.matches(name).count(), 1, "{name} in {}", run.stderr);
    }
    // Nothing was left out of these.
    assert_eq!(skipping("part = 'p3'").succeeds().text(), "50\n");
    assert_eq!(skipping("part = 'p4'").ends_with(1).text(), "0\n");
    assert_eq!(skipping("part = 'p2'").ends_with(3).text(), "0\n");
    // A wrong question is refused before any table is read.
    skipping("nix = 7").ends_with(2);
    // All that are wrong are named at once.
    let verify = scratch.run(["index", "verify", "u.ibx", "--tables"]).ends_with(2);
    for name in ["first.csv", "p1.csv", "p2.csv"] {
        assert!(verify.stderr.contains(name), "{name} in {}", verify.stderr);
    }
    assert!(!verify.stderr.contains("p3.csv"), "{}", verify.stderr);
    scratch.run(["index", "verify", "u.ibx"]).succeeds();
}

/// Of a CSV that keeps its length, its ends and what is sampled between, one letter differs.
#[test]
fn verify_reads_every_row() {
    let scratch = Scratch::new();
    let lines: String = (0..60_000).map(|id| format!("{id},x{id}\n")).collect();
    scratch.write("t.csv", format!("id,text\n{lines}"));
    scratch.run(["index", "build", "t.csv", "-o", "t.ibx"]).succeeds();
    scratch.write("t.csv", format!("id,text\n{}", lines.replace("30001,x30001", "30001,y30001")));
    assert_eq!(count(&scratch, ["id = 7"]), 1, "it reads nothing that has changed");
    scratch.run(["index", "verify", "t.ibx"]).succeeds();
    let verify = scratch.run(["index", "verify", "t.ibx", "--tables", "--json"]).ends_with(2);
    assert!(
        verify.json()["state"].as_str().unwrap().contains("t.csv changed"),
        "{}",
        verify.text()
    );
}

#[test]
fn help_and_documents_say_the_same_about_what_is_noticed() {
    let words = |text: &str| text.replace('`', "").split_whitespace().collect::<Vec<_>>().join(" ");
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/index.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let (_, section) = docs.split_once("\n## What is noticed\n\n").unwrap();
    let said = words(section.split("\n\n").next().unwrap());
    assert!(said.starts_with("A table is opened only if") && said.len() > 300, "{said}");
    let scratch = Scratch::new();
    for command in ["find", "verify"] {
        let help = words(&scratch.run(["index", command, "--help"]).succeeds().text());
        assert!(help.contains(&said), "{command}: {said}\n\n{help}");
    }
}

/// The reader of Parquet panics on this file, which must be an error of ours, without a backtrace.
#[test]
fn a_damaged_table_is_one_line_of_error() {
    let others =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../ironbloom-index/tests/others");
    let mut bytes = std::fs::read(others.join("byte_array_decimal.parquet")).unwrap();
    bytes[27] = 7;
    let scratch = Scratch::new();
    scratch.write("t.parquet", bytes);
    let run = scratch.run(["index", "build", "t.parquet", "-o", "t.ibx"]).ends_with(2);
    assert!(run.stderr.starts_with("error: t.parquet: damaged: "), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

/// Ctrl-C, at any moment: no temporary file is left, and no lock.
#[cfg(unix)]
#[test]
fn interrupted_changes_leave_no_file() {
    let scratch = parts(0..1);
    let mut interrupted = 0;
    for round in 0..30u64 {
        let mut child = start(&scratch, "index compact u.ibx");
        std::thread::sleep(std::time::Duration::from_micros(2000 + 400 * round));
        child.signal(Signal::INT);
        let status = child.wait().unwrap();
        // No code: the signal came before anybody waited for it.
        assert!(matches!(status.code(), Some(0 | 130) | None), "round {round}: {status}");
        interrupted += u32::from(status.code() == Some(130));
        is_tidy(&scratch);
    }
    assert!(interrupted > 0, "all were done before");
    scratch.run(["index", "verify", "u.ibx"]).succeeds();
}
