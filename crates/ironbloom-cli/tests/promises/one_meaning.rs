//! One key, one meaning: the program's part of the test that `one_meaning.rs` of the library describes.

use std::path::{Path, PathBuf};

use crate::program::Scratch;

fn golden(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ironbloom/tests/golden/keys");
    folder.join(format!("{name}.ibf"))
}

/// The names of all files there, so that none is left out.
fn names() -> Vec<String> {
    let entries = std::fs::read_dir(golden("").parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(".ibf").map(str::to_owned)).collect()
}

fn numbers() -> Vec<i64> {
    let edges = [i64::MIN, i64::MIN + 1, -2, -1, i64::MAX - 1, i64::MAX];
    edges.into_iter().chain(0..994).collect()
}

fn text(numbers: impl IntoIterator<Item = i64>) -> String {
    numbers.into_iter().map(|number| format!("{number}\n")).collect()
}

fn bytes(numbers: impl IntoIterator<Item = i64>) -> Vec<u8> {
    numbers
        .into_iter()
        .flat_map(|number| [b"\xff", format!("{number}\n").as_bytes()].concat())
        .collect()
}

#[test]
fn the_program_writes_the_same_files_as_all_other_programs() {
    let scratch = Scratch::new();
    scratch.write("key", (0..16u8).collect::<Vec<u8>>());
    let (text, bytes) = (text(numbers()).into_bytes(), bytes(numbers()));
    let (bloom, blocked) = (["--kind", "bloom"], ["--kind", "blocked"]);
    for (name, kind, options, keys) in [
        ("text", bloom, &[][..], &text),
        ("text-blocked", blocked, &[], &text),
        ("text-secret", bloom, &["--secret-file", "key"], &text),
        ("bytes", bloom, &[], &bytes),
        ("bytes-blocked", blocked, &[], &bytes),
        ("integers", bloom, &["--keys", "long"], &text),
        ("integers-blocked", blocked, &["--keys", "long"], &text),
    ] {
        scratch.write("keys", keys);
        let args = ["build", "keys", "-o", "f.ibf", "--rate", "1e-6", "--capacity", "1000"];
        let run = scratch.command(args.iter().chain(&kind).chain(options)).output().unwrap();
        assert!(run.status.success(), "{name}: {run:?}");
        assert!(scratch.read("f.ibf") == std::fs::read(golden(name)).unwrap(), "{name}");
    }
    // Which of its two buckets a row is in depends on the order of inserts: the head, which has the types, is the same.
    const HEAD: usize = 384;
    let rows: String = numbers().iter().map(|number| format!("{number},n{number}\n")).collect();
    scratch.write("rows.csv", format!("id,name\n{rows}"));
    let args = ["build", "--kind", "joint", "--rate", "1e-6", "--csv", "id,name", "-o", "f.ibf"];
    let run = scratch.command(args.iter().chain(&["--capacity", "1000", "rows.csv"])).output();
    assert!(run.unwrap().status.success());
    assert!(
        scratch.read("f.ibf")[..HEAD] == std::fs::read(golden("rows-of-text")).unwrap()[..HEAD]
    );
}

/// `check` of lines; how many of them were present, or the message that refuses them.
fn ask(scratch: &Scratch, name: &str, lines: impl AsRef<[u8]>) -> Result<usize, String> {
    let run =
        scratch.run_with(["check", "--count", "--json", golden(name).to_str().unwrap()], lines);
    match run.status {
        2 => Err(run.stderr),
        _ => Ok(run.json()["present"].as_u64().unwrap() as usize),
    }
}

#[test]
fn the_program_answers_for_the_keys_of_every_file_or_refuses_by_name() {
    let scratch = Scratch::new();
    for name in names() {
        let there = ask(&scratch, &name, text(numbers()));
        let absent = ask(&scratch, &name, text(5000..6000));
        let of_bytes = ask(&scratch, &name, bytes(numbers()));
        let refusal = match name.as_str() {
            "text" | "text-blocked" | "text-keyed" => {
                assert_eq!((there, absent, of_bytes), (Ok(1000), Ok(0), Ok(0)), "{name}");
                continue;
            }
            "bytes" | "bytes-blocked" => {
                assert_eq!((there, absent, of_bytes), (Ok(0), Ok(0), Ok(1000)), "{name}");
                continue;
            }
            // Lines are read as integers there.
            "integers" | "integers-blocked" | "integers-declared" => {
                assert_eq!((there, absent), (Ok(1000), Ok(0)), "{name}");
                assert!(of_bytes.unwrap_err().contains("not an integer: "), "{name}");
                continue;
            }
            "floats" => "holds other values, such as floats, dates and tuples, not text or bytes",
            "hashed" => "holds hashed values, not text or bytes",
            "several" => {
                "holds text or bytes, and integers: text may stand for a key of any of these"
            }
            "text-secret" => "a secret key that is not in its file",
            // Rows come from columns of a table.
            "rows-of-text" | "rows-typed" => "no column \"id\"",
            other => panic!("{other}: a file that this test does not know"),
        };
        for answer in [there, absent, of_bytes] {
            let message = answer.unwrap_err();
            assert!(message.contains(refusal), "{name}: {message}");
        }
    }
    let several = golden("several");
    for (form, present) in [("text", 500), ("long", 500)] {
        let args = ["check", several.to_str().unwrap(), "--count", "--json", "--keys", form];
        let run = scratch.run_with(args, text(numbers()));
        assert_eq!(run.json()["present"], present, "{form}");
    }
    scratch.write("key", (0..16u8).collect::<Vec<u8>>());
    let secret = golden("text-secret");
    let args = ["check", secret.to_str().unwrap(), "--secret-file", "key", "--count", "--json"];
    assert_eq!(scratch.run_with(args, text(numbers())).json()["present"], 1000);
}

#[test]
fn the_program_answers_for_rows_by_the_types_of_their_attributes_or_refuses() {
    let scratch = Scratch::new();
    for name in ["rows-of-text", "rows-typed"] {
        let file = golden(name);
        let ask = |id: &str, text: &str| {
            let (id, text) = (format!("id={id}"), format!("name={text}"));
            scratch.run(["check", file.to_str().unwrap(), "--where", &id, "--where", &text])
        };
        for number in numbers().into_iter().step_by(97).chain([-1, i64::MAX]) {
            ask(&number.to_string(), &format!("n{number}")).succeeds();
            ask(&number.to_string(), &format!("n{}", number ^ 1)).ends_with(1);
        }
        let odd = ask("seven", "n7");
        match name {
            "rows-of-text" => _ = odd.ends_with(1),
            _ => assert!(odd.ends_with(2).stderr.contains("not an integer: \"seven\"")),
        }
    }
}
