//! Keys from CSV and TSV: columns by name and number, delimiters, and whole rows.

use crate::program::Scratch;

const USERS: &str =
    "id,email,note\n1,a@x,plain\n2,b@x,\"two\nlines, and a \"\"quote\"\"\"\n3,a@x,\n";

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("users.csv", USERS);
    scratch
}

#[test]
fn a_column_is_named_or_numbered_from_one() {
    let scratch = scratch();
    for column in ["email", "2"] {
        let run = scratch.run(["dedup", "--csv", column, "users.csv"]).succeeds();
        assert_eq!(run.text(), "a@x\nb@x\n", "{column}");
        scratch.run(["build", "-o", "x.ibf", "--csv", column, "users.csv"]).succeeds();
        assert_eq!(scratch.present("x.ibf", "a@x\nc@x\nb@x\n"), "a@x\nb@x\n");
    }
    // What is a name is not a number.
    let run = scratch.run_with(["dedup", "--csv", "2"], "2,a\nx,y\n").succeeds();
    assert_eq!(run.text(), "x\n");
    let run =
        scratch.refuses(["dedup", "--csv", "4", "users.csv"], "", "users.csv: no column \"4\"");
    assert_eq!(run.hint(), "the columns are: id, email, note\n");
    scratch.refuses(
        ["dedup", "--csv", "0", "users.csv"],
        "",
        "users.csv: no column 0: columns are counted from 1",
    );
}

#[test]
fn fields_are_divided_by_tabs_or_any_character() {
    let scratch = Scratch::new();
    let run = scratch.run_with(["dedup", "--tsv", "b"], "a\tb\n1\tx,y\n2\tx,y\n").succeeds();
    assert_eq!(run.text(), "x,y\n");
    for delimiter in ["\\t", "\t"] {
        let run =
            scratch.run_with(["dedup", "--csv", "b", "--delimiter", delimiter], "a\tb\n1\tx\n");
        assert_eq!(run.succeeds().text(), "x\n");
    }
    let run =
        scratch.run_with(["dedup", "--csv", "2", "--delimiter", ";", "--no-header"], "1;x\n2;y\n");
    assert_eq!(run.succeeds().text(), "x\ny\n");
    scratch.refuses(["dedup", "--delimiter", ";"], "", "--delimiter is for tables");
    scratch.refuses(["dedup", "--no-header"], "", "--no-header is for tables");
    scratch.refuses(
        ["dedup", "--no-header", "--csv", "a"],
        "1\n",
        "standard input: no column \"a\"",
    );
    scratch.run(["dedup", "--csv", "a", "--delimiter", "::"]).ends_with(2);
}

#[test]
fn check_prints_whole_rows_below_their_header() {
    let scratch = scratch();
    scratch.build("some.ibf", ["--rate", "1e-6"], "b@x\n");
    let check = |option: &str| {
        scratch.run(["check", "some.ibf", "--csv", "email", option, "users.csv"]).succeeds().text()
    };
    assert_eq!(check("--rows"), "id,email,note\n2,b@x,\"two\nlines, and a \"\"quote\"\"\"\n");
    let run = scratch.run(["check", "some.ibf", "--absent", "--csv", "2", "--rows", "users.csv"]);
    assert_eq!(run.succeeds().text(), "id,email,note\n1,a@x,plain\n3,a@x,\n");
    assert_eq!(check("--json"), "{\n  \"present\": 1,\n  \"absent\": 2\n}\n");
    let run = scratch.run_with(
        ["check", "some.ibf", "--csv", "2", "--no-header", "--delimiter", ";", "--rows"],
        "1;b@x;\"a;b\"\n2;c@x;d\n",
    );
    assert_eq!(run.succeeds().text(), "1;b@x;\"a;b\"\n");
    scratch.refuses(["check", "some.ibf", "--rows"], "", "--rows is for tables");
}

#[test]
fn dedup_prints_the_first_row_with_each_key() {
    let scratch = scratch();
    let run = scratch.run(["dedup", "--csv", "email", "--rows", "users.csv"]).succeeds();
    let (kept, _) = USERS.split_at(USERS.len() - "3,a@x,\n".len());
    assert_eq!(run.text(), kept);
    // Two tables are one if their headers are.
    let run =
        scratch.run(["dedup", "--csv", "email", "--rows", "users.csv", "users.csv"]).succeeds();
    assert_eq!(run.text(), kept);
    scratch.write("other.csv", "email\nz@x\n");
    let run =
        scratch.run(["dedup", "--csv", "email", "--rows", "users.csv", "other.csv"]).ends_with(2);
    assert!(run.stderr.starts_with("error: other.csv: has another header"), "{}", run.stderr);
}

#[test]
fn whole_rows_can_be_had_of_filters_of_rows() {
    let scratch = Scratch::new();
    scratch.write("t.csv", "size,color,price\nlarge,red,1\nsmall,blue,2\n");
    scratch
        .run(["build", "-o", "t.ibf", "--kind", "joint", "--csv", "size,color", "t.csv"])
        .succeeds();
    scratch.write("q.csv", "size,color,price\nsmall,blue,9\nlarge,blue,8\n");
    let run = scratch.run(["check", "t.ibf", "--rows", "q.csv"]).succeeds();
    assert_eq!(run.text(), "size,color,price\nsmall,blue,9\n");
    let run = scratch.run(["check", "t.ibf", "--csv", "1,2", "q.csv"]).succeeds();
    assert_eq!(run.text(), "small,blue\n");
}

#[test]
fn many_rows_are_printed_in_order() {
    let scratch = Scratch::new();
    let rows: String = (0..20_000).map(|i| format!("{i},\"x\n{i}\"\n")).collect();
    scratch.write("t.csv", format!("id,text\n{rows}"));
    let run = scratch.run(["dedup", "--csv", "id", "--rows", "t.csv"]).succeeds();
    assert!(run.text() == format!("id,text\n{rows}"));
}

/// A table that cannot be read for certain is an error with its line: a reader that forgives takes one stray quote for the start
/// of a field that ends with the file.
#[test]
fn a_malformed_table_is_an_error_with_its_line_and_nothing_is_written() {
    let scratch = Scratch::new();
    let rows: String = (1..=1000)
        .map(|i| if i == 4 { "4,\"5 inches\n".to_owned() } else { format!("{i},x\n") })
        .collect();
    let quote = format!("id,size\n{rows}");
    for (table, error) in [
        (quote.as_str(), "line 5: a quote that is never closed"),
        ("id,size\n1,\"x\"y\n", "line 2: text after a closing quote"),
        ("id,id\n1,2\n", "line 1: columns 1 and 2 are both called \"id\""),
        ("id,size\n1,2\n3\n", "line 3: 1 field, where the first row has 2"),
        ("id,size\n1,2\n3,4,5\n", "line 3: 3 fields, where the first row has 2"),
        ("id,size\r1,2\r", "line 1: a carriage return without a line feed"),
    ] {
        scratch.write("t.csv", table);
        let message = format!("t.csv: {error}");
        scratch.refuses(["build", "-o", "f.ibf", "--csv", "id", "t.csv"], "", &message);
    }
    // In fields between tabs a quote is a character like others.
    scratch.write("t.tsv", quote.replace(',', "\t"));
    scratch.run(["build", "-o", "f.ibf", "--tsv", "size", "t.tsv"]).succeeds();
    assert_eq!(scratch.present("f.ibf", "\"5 inches\nx\n"), "\"5 inches\nx\n");
    let run = scratch.run(["dedup", "--tsv", "size", "--rows", "t.tsv"]).succeeds();
    assert_eq!(run.text(), "id\tsize\n1\tx\n4\t\"5 inches\n");
}
