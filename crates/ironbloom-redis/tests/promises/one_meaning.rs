//! One key, one meaning: the module's part of the test that `one_meaning.rs` of the library describes.

use std::path::{Path, PathBuf};

use ironbloom_testing::module::{Client, Server, all_programs as programs};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ironbloom/tests/golden/keys")
}

fn numbers() -> Vec<i64> {
    let edges = [i64::MIN, i64::MIN + 1, -2, -1, i64::MAX - 1, i64::MAX];
    edges.into_iter().chain(0..994).collect()
}

fn text(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn bytes(number: i64) -> Vec<u8> {
    [b"\xff", number.to_string().as_bytes()].concat()
}

/// A command with all of these items.
fn call(client: &mut Client, command: &str, items: &[Vec<u8>]) -> String {
    let words = command.split(' ').map(str::as_bytes).chain(items.iter().map(Vec::as_slice));
    let words: Vec<&[u8]> = words.collect();
    String::from_utf8_lossy(&client.call_words(&words)).into_owned()
}

/// How many of these are in the filter.
fn found(client: &mut Client, items: &[Vec<u8>]) -> usize {
    call(client, "BF.MEXISTS f", items).lines().filter(|line| *line == ":1").count()
}

#[test]
fn the_module_writes_the_same_files_as_all_other_programs() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for (name, seed, of) in [
            ("text-blocked", "", text as fn(i64) -> Vec<u8>),
            ("bytes-blocked", "", bytes),
            ("text-keyed", " SEED 000102030405060708090a0b0c0d0e0f", text),
        ] {
            client.call("DEL f");
            let made = format!("BF.RESERVE f 0.000001 1000 NONSCALING LAYOUT BLOCKED{seed}");
            assert_eq!(client.text(&made), "+OK\r\n");
            let items: Vec<Vec<u8>> = numbers().into_iter().map(of).collect();
            let reply = call(&mut client, "BF.MADD f", &items);
            assert!(reply.starts_with("*1000"), "{reply}");
            let dump = client.scandump("BF", "f").into_iter().skip(1);
            let dump: Vec<u8> = dump.flat_map(|(_, piece)| piece).collect();
            let golden = std::fs::read(folder().join(format!("{name}.ibf"))).unwrap();
            assert!(dump == golden, "{name}");
        }
    }
}

#[test]
fn the_module_answers_for_the_keys_of_every_file_or_refuses_by_name() {
    let texts: Vec<Vec<u8>> = numbers().into_iter().map(text).collect();
    let binary: Vec<Vec<u8>> = numbers().into_iter().map(bytes).collect();
    let absent: Vec<Vec<u8>> = (5000..6000).map(text).collect();
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for entry in std::fs::read_dir(folder()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "ibf") {
                continue;
            }
            let name = path.file_stem().unwrap().to_str().unwrap();
            let image = std::fs::read(&path).unwrap();
            let sum = xxhash_rust::xxh3::xxh3_64(&image).to_le_bytes();
            let header = [&b"IBLOOM01"[..], &(image.len() as u64).to_le_bytes(), &sum].concat();
            client.call("DEL f");
            let reply = client.load("BF", "f", &[(1, header), (1 + image.len() as i64, image)]);
            let refusal = match name {
                "text" | "text-blocked" | "text-keyed" | "bytes" | "bytes-blocked" => {
                    assert_eq!(reply, "+OK\r\n", "{name}");
                    let is_text = name.starts_with("text");
                    let expected = if is_text { (1000, 0, 0) } else { (0, 1000, 0) };
                    let answers = [&texts, &binary, &absent].map(|items| found(&mut client, items));
                    assert_eq!((answers[0], answers[1], answers[2]), expected, "{name}");
                    continue;
                }
                "integers" | "integers-blocked" | "integers-declared" => {
                    "holds integers, not text or bytes"
                }
                "floats" => {
                    "holds other values, such as floats, dates and tuples, not text or bytes"
                }
                "hashed" => "holds hashed values, not text or bytes",
                "several" => "holds text or bytes, and integers: text may stand for",
                "text-secret" => "a secret key that is not in its file",
                "rows-of-text" | "rows-typed" => "joint",
                other => panic!("{other}: a file that this test does not know"),
            };
            assert!(reply.starts_with('-') && reply.contains(refusal), "{name}: {reply}");
            assert_eq!(client.text("EXISTS f"), ":0\r\n", "{name}");
        }
    }
}
