//! One key, one meaning: what the library, standing for programs in any language, writes is read by the program as what it is, or
//! refused by name; and the reverse.

use ironbloom::multi::{Joint, MultiFilter as _};
use ironbloom::{
    AnyFilter, Bloom, BloomParams, Encoded, HashFn, HashKey, Hashed, Key, KeyType, Persist as _,
    plan,
};

use crate::program::{Scratch, lines};

/// The key that Python makes of a float.
struct Float(Vec<u8>);

impl Float {
    fn of(number: f64) -> Self {
        Self([&[0xff, b'f'][..], &number.to_bits().to_le_bytes()].concat())
    }
}

impl Key for Float {
    fn encoded(&self) -> Encoded<'_> {
        Encoded::Value(&self.0)
    }
}

fn filled<K: Key>(keys: &[K]) -> AnyFilter {
    let mut filter = AnyFilter::from(Bloom::with_rate(2000, 1e-6).unwrap());
    filter.insert_keys(keys).unwrap();
    filter
}

/// Rust writes, the program reads: the same answers for 1,000 keys, or a refusal that names both types.
#[test]
fn every_type_of_keys_is_answered_for_or_refused_by_name() {
    let scratch = Scratch::new();
    let edges = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX];
    let integers: Vec<i64> = edges.into_iter().chain(1000..1994).collect();
    let texts: Vec<String> = integers.iter().map(ToString::to_string).collect();
    let all = texts.join("\n") + "\n";
    for (name, filter) in [("integers", filled(&integers)), ("text", filled(&texts))] {
        filter.save(scratch.path("f.ibf")).unwrap();
        assert_eq!(scratch.present("f.ibf", &all), all, "{name}");
        assert_eq!(scratch.present("f.ibf", &lines(5000..6000)), "", "{name}");
    }
    filled(&[u64::MAX]).save(scratch.path("f.ibf")).unwrap();
    assert_eq!(scratch.present("f.ibf", "18446744073709551615\n"), "18446744073709551615\n");
    let args = ["check", "f.ibf"];
    scratch.refuses(args, "alice\n", "standard input: line 1: not an integer: \"alice\"");
    scratch.refuses(args, "007\n", "standard input: line 1: not an integer: \"007\"");

    filled(&[Hashed((1, 2))]).save(scratch.path("f.ibf")).unwrap();
    let held = "f.ibf: the filter holds hashed values, not text or bytes";
    scratch.refuses(args, "1\n", held);
    filled(&[Float::of(1.5)]).save(scratch.path("f.ibf")).unwrap();
    let held =
        "f.ibf: the filter holds other values, such as floats, dates and tuples, not text or bytes";
    scratch.refuses(args, "1.5\n", held);
    scratch.refuses(["add", "f.ibf"], "1.5\n", held);

    let mut both = filled(&[7]);
    both.insert("7").unwrap();
    both.insert("eight").unwrap();
    both.save(scratch.path("f.ibf")).unwrap();
    scratch.refuses(
        args,
        "7\n",
        "f.ibf: the filter holds text or bytes, and integers: text may stand",
    );
    let as_text = scratch.run_with(["check", "f.ibf", "--keys", "text"], "7\neight\n");
    assert_eq!(as_text.succeeds().text(), "7\neight\n");
    let as_integers = scratch.run_with(["check", "f.ibf", "--keys", "long"], "7\n8\n");
    assert_eq!(as_integers.succeeds().text(), "7\n");
}

/// The program writes, Rust reads.
#[test]
fn the_program_records_what_its_lines_are() {
    let scratch = Scratch::new();
    for plan in plan::all().filter(|plan| !matches!(plan.name, "bitmap" | "joint")) {
        let options = ["--kind", plan.name, "--capacity", "1000"];
        scratch.build("f.ibf", options, &lines(0..1000));
        let text = AnyFilter::load(scratch.path("f.ibf")).unwrap();
        assert!(text.contains("999").unwrap(), "{}", plan.name);
        let refused = text.contains(999).unwrap_err().to_string();
        assert_eq!(refused, "the filter holds text or bytes, not integers", "{}", plan.name);

        let options = ["--kind", plan.name, "--capacity", "1000", "--keys", "long"];
        scratch.build("f.ibf", options, &lines(0..1000));
        let integers = AnyFilter::load(scratch.path("f.ibf")).unwrap();
        assert!((0..1000).all(|key| integers.contains(key).unwrap()), "{}", plan.name);
        let refused = integers.contains("999").unwrap_err().to_string();
        assert_eq!(refused, "the filter holds integers, not text or bytes", "{}", plan.name);
    }
    scratch.build("t.ibf", ["--capacity", "100"], "a\n");
    scratch.build("i.ibf", ["--capacity", "100", "--keys", "long"], "1\n");
    let message =
        "cannot merge t.ibf and i.ibf: type of the keys differs: text or bytes and integers";
    scratch.refuses(["merge", "-o", "m.ibf", "t.ibf", "i.ibf"], "", message);
    scratch.run_with(["add", "i.ibf"], "2\n").succeeds();
    assert!(AnyFilter::load(scratch.path("i.ibf")).unwrap().contains(2).unwrap());
    assert_eq!(scratch.info("i.ibf")["key_types"], "integers");
}

#[test]
fn values_of_rows_have_the_types_of_their_attributes() {
    let scratch = Scratch::new();
    let mut rows = Joint::with_rate(100, 1e-6, ["size", "id"]).unwrap();
    rows.note_keys(&[KeyType::Bytes.into(), KeyType::Integer.into()]);
    for id in 0..50 {
        let attributes = rows.attributes();
        let row = [
            attributes.hash_fn_of(0).unwrap().hash("large"),
            attributes.hash_fn_of(1).unwrap().hash(id),
        ];
        rows.insert_hashed(&row).unwrap();
    }
    rows.save(scratch.path("r.ibf")).unwrap();
    let args = ["check", "r.ibf", "--where", "size=large", "--where", "id=7"];
    scratch.run(args).succeeds();
    scratch.run(["check", "r.ibf", "--where", "size=large", "--where", "id=77"]).ends_with(1);
    let refused = scratch.run(["check", "r.ibf", "--where", "size=large", "--where", "id=x"]);
    assert!(refused.ends_with(2).stderr.contains("not an integer: \"x\""));
    scratch.run_with(["add", "r.ibf", "-"], "size,id\nsmall,8\n").succeeds();
    let rows = AnyFilter::load(scratch.path("r.ibf")).unwrap();
    assert_eq!(rows.as_multi().unwrap().attributes().key_types(1), KeyType::Integer.into());
}

/// A file of an earlier release answers the program as it did.
#[test]
fn lines_are_text_where_a_file_does_not_say_what_its_keys_are() {
    let scratch = Scratch::new();
    let mut old = Bloom::with_rate(100, 1e-6).unwrap();
    old.insert_hash(old.hash_fn().hash("7"));
    old.save(scratch.path("old.ibf")).unwrap();
    assert_eq!(scratch.present("old.ibf", "7\n8\n"), "7\n");
    scratch.run_with(["add", "old.ibf"], "8\n").succeeds();
    assert_eq!(scratch.present("old.ibf", "7\n8\n"), "7\n8\n");
    assert_eq!(scratch.info("old.ibf")["key_types"], "not recorded");
}

#[test]
fn a_secret_key_is_in_no_file_and_is_needed_to_ask() {
    let scratch = Scratch::new();
    let key = [7u8; 16];
    scratch.write("k", key);
    scratch.write("other", "00112233445566778899aabbccddeeff\n");
    scratch.build("s.ibf", ["--secret-file", "k"], "alice\nbob\n");
    let bytes = scratch.read("s.ibf");
    assert!(!bytes.windows(8).any(|window| window == &key[..8]));
    let run = scratch.run_with(["check", "s.ibf", "--secret-file", "k"], "alice\ncarol\n");
    assert_eq!(run.succeeds().text(), "alice\n");
    let locked = "s.ibf: the filter's hash has a secret key that is not in its file";
    scratch.refuses(["check", "s.ibf"], "alice\n", locked);
    scratch.refuses(["add", "s.ibf"], "carol\n", locked);
    let wrong = ["check", "s.ibf", "--secret-file", "other"];
    scratch.refuses(wrong, "alice\n", "s.ibf: made with another secret key");
    scratch.refuses(["check", "s.ibf", "--secret-file", "missing"], "", "missing: ");
    scratch.run_with(["add", "s.ibf", "--secret-file", "k"], "carol\n").succeeds();

    let mut ours = Bloom::new(
        BloomParams::for_rate(100, 1e-6).unwrap(),
        HashFn::secret(HashKey::from_bytes(key)),
    )
    .unwrap();
    ours.insert("dora");
    ours.save(scratch.path("r.ibf")).unwrap();
    let run = scratch.run_with(["check", "r.ibf", "--secret-file", "k"], "dora\nalice\n");
    assert_eq!(run.succeeds().text(), "dora\n");
    let theirs = AnyFilter::load_with_key(scratch.path("s.ibf"), HashKey::from_bytes(key)).unwrap();
    assert!(theirs.contains("carol").unwrap() && !theirs.contains("dora").unwrap());

    scratch.build("one.ibf", ["--seed", "random", "--capacity", "10"], "a\n");
    scratch.build("two.ibf", ["--seed", "random", "--capacity", "10"], "a\n");
    assert_eq!(scratch.present("one.ibf", "a\nb\n"), "a\n");
    assert_ne!(scratch.read("one.ibf"), scratch.read("two.ibf"));
    let differ = "cannot merge one.ibf and two.ibf: hash function differs";
    scratch.refuses(["merge", "-o", "m.ibf", "one.ibf", "two.ibf"], "", differ);
}

#[test]
fn a_secret_without_end_is_refused() {
    let scratch = Scratch::new();
    let args = ["build", "-o", "f.ibf", "--secret-file", "/dev/zero"];
    scratch.refuses(args, "a\n", "/dev/zero: is not 16 bytes or 32 hexadecimal digits");
}

/// Its hash is Parquet's; with another it could not be converted.
#[test]
fn a_split_block_filter_takes_no_secret() {
    let scratch = Scratch::new();
    scratch.write("key", "0123456789abcdef");
    for options in [["--seed", "random"], ["--secret-file", "key"]] {
        let [option, value] = options;
        let args = ["build", "-o", "f.ibf", "--kind", "split-block", option, value];
        scratch.refuses(args, "a\n", "the hash of a split-block filter is prescribed");
    }
}
