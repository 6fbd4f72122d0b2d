//! Filters of rows: built from columns of CSV, asked with `--where`, and what the other commands make of them.

use crate::program::Scratch;

const THINGS: &str = "id,size,color\n1,large,red\n2,small,green\n3,small,\"blue, dark\"\n";

/// A table of sizes and colours, as a filter for whole rows and one for any of the columns.
fn things() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("things.csv", THINGS);
    for (name, partial) in [("t.ibf", None), ("p.ibf", Some("--partial"))] {
        let args =
            ["build", "--kind", "joint", "--rate", "1e-6", "--csv", "size,color", "-o", name];
        let args = args.into_iter().chain(partial).chain(["things.csv"]);
        assert!(scratch.command(args).output().unwrap().status.success());
    }
    scratch
}

// ----------------------------------------------------------------------------------------------------------- questions

#[test]
fn a_row_is_found_and_a_mixture_of_rows_is_not() {
    let scratch = things();
    for filter in ["t.ibf", "p.ibf"] {
        let check = |size: &str, color: &str| {
            let (size, color) = (format!("size={size}"), format!("color={color}"));
            scratch.run(["check", filter, "--where", &size, "--where", &color])
        };
        assert_eq!(check("large", "red").succeeds().text(), "size=large color=red\n");
        check("small", "green").succeeds();
        check("small", "blue, dark").succeeds();
        for (size, color) in [("large", "green"), ("small", "red"), ("red", "large"), ("", "")] {
            assert_eq!(check(size, color).ends_with(1).text(), "", "{size} {color}");
        }
        let backwards = ["check", filter, "--where", "color=red", "--where", "size=large"];
        scratch.run(backwards).succeeds();
    }
}

#[test]
fn absent_count_and_json_work_as_for_keys() {
    let scratch = things();
    let ask = |flag: &str, color: &str| {
        scratch.run(["check", "t.ibf", flag, "--where", "size=large", "--where", color])
    };
    assert_eq!(ask("--absent", "color=red").succeeds().text(), "");
    assert_eq!(ask("--absent", "color=green").ends_with(1).text(), "size=large color=green\n");
    assert_eq!(ask("--count", "color=red").succeeds().text(), "present  1\nabsent   0\n");
    let args = ["check", "t.ibf", "--count", "--json", "--where", "size=a", "--where", "color=b"];
    let json = scratch.run(args).ends_with(1).json();
    assert_eq!((json["present"].as_u64(), json["absent"].as_u64()), (Some(0), Some(1)));
}

#[test]
fn some_of_the_attributes_are_enough_for_a_partial_filter() {
    let scratch = things();
    scratch.run(["check", "p.ibf", "--where", "size=large"]).succeeds();
    scratch.run(["check", "p.ibf", "--where", "color=green"]).succeeds();
    scratch.run(["check", "p.ibf", "--where", "color=large"]).ends_with(1);
    let message = "t.ibf: the filter answers only for all 2 attributes together, not for 1 of them";
    let refused = scratch.refuses(["check", "t.ibf", "--where", "size=large"], "", message);
    assert!(refused.hint().contains("give --where for color too"), "{}", refused.stderr);
    let rebuild = "ironbloom build --kind joint --partial --csv size,color -o t.ibf";
    assert!(refused.hint().contains(rebuild), "{}", refused.stderr);
}

#[test]
fn a_question_that_makes_no_sense_is_refused() {
    let scratch = things();
    let refuses = |clauses: [&str; 2], message: &str| {
        let [a, b] = clauses;
        scratch.refuses(["check", "p.ibf", "--where", a, "--where", b], "", message)
    };
    let unknown = refuses(["size=large", "weight=3"], "no attribute \"weight\"");
    assert_eq!(unknown.hint(), "the attributes are: size, color\n");
    let twice = refuses(["size=large", "size=small"], "attribute \"size\" is given twice");
    assert!(twice.hint().contains("one value"));
    let missing = refuses(["size=large", "color"], "--where \"color\" has no =");
    assert!(missing.hint().contains("NAME=VALUE") && missing.hint().contains("size, color"));
    refuses(["=x", "color=red"], "no attribute \"\"");

    scratch.write("keys.txt", "a\n");
    let input = scratch.refuses(["check", "p.ibf", "--where", "size=large", "keys.txt"], "", "");
    assert!(input.stderr.contains("cannot be used with"), "{}", input.stderr);
    scratch.build("b.ibf", [], "a\n");
    let keys = scratch.refuses(
        ["check", "b.ibf", "--where", "size=large"],
        "",
        "b.ibf: a bloom filter holds keys, which have no attributes",
    );
    assert!(keys.hint().contains("--kind joint"));
}

#[test]
fn rows_of_a_file_are_checked_by_the_names_of_their_columns() {
    let scratch = things();
    let more = "color,other,size\nred,x,large\ngreen,x,large\n\"blue, dark\",x,small\n";
    scratch.write("more.csv", more);
    let found = scratch.run(["check", "t.ibf", "more.csv"]).succeeds();
    assert_eq!(found.text(), "large,red\nsmall,\"blue, dark\"\n");
    let absent = scratch.run(["check", "t.ibf", "--absent", "more.csv"]).succeeds();
    assert_eq!(absent.text(), "large,green\n");
    scratch.write("renamed.csv", more.replace("color", "colour"));
    scratch.refuses(["check", "t.ibf", "renamed.csv"], "", "renamed.csv: no column \"color\"");
    let args = ["check", "t.ibf", "--csv", "size,colour", "--count", "renamed.csv"];
    assert_eq!(scratch.run(args).succeeds().text(), "present  2\nabsent   1\n");
    let few = scratch.refuses(
        ["check", "t.ibf", "--csv", "size", "more.csv"],
        "",
        "--csv names 1 column, where the filter has 2",
    );
    assert!(few.hint().ends_with("size, color\n"));
}

// ------------------------------------------------------------------------------------------------------------ building

#[test]
fn what_is_not_a_row_is_refused() {
    let scratch = things();
    let build = ["build", "--kind", "joint", "-o", "n.ibf"];
    let without = scratch.refuses(build, "a\n", "--kind joint needs the columns that make a row");
    assert_eq!(without.hint(), "name them: --csv size,color\n");
    let refuses = |list: &str, message: &str| {
        let args = ["build", "--kind", "joint", "-o", "n.ibf", "--csv", list, "things.csv"];
        scratch.refuses(args, "", message)
    };
    let unknown = refuses("size,weight", "things.csv: no column \"weight\"");
    assert_eq!(unknown.hint(), "the columns are: id, size, color\n");
    refuses("size,size", "attribute name 2 is that of 1");
    refuses("size,,color", "--csv \"size,,color\": column 2 has no name");
    refuses("", "--csv \"\" names no column");
    refuses(&vec!["size"; 33].join(","), "attributes must be between 1 and 32, got 33");
    scratch.write("short.csv", "size,color\nlarge,red\nsmall\n");
    let args = ["build", "--kind", "joint", "-o", "n.ibf", "--csv", "size,color", "short.csv"];
    scratch.refuses(args, "", "short.csv: line 3: 1 field, where the first row has");
    let partial = ["build", "--partial", "-o", "n.ibf", "things.csv"];
    scratch.refuses(partial, "", "--partial is for --kind joint");
}

/// Ten thousand rows, each three times.
#[test]
fn large_inputs_are_sized_to_their_distinct_rows() {
    let scratch = Scratch::new();
    let row = |i: u64| format!("{},{i},n{}\n", i % 7, i % 100);
    let rows: String = (0..10_000).map(row).collect();
    scratch.write("rows.csv", format!("a,b,c\n{rows}{rows}{rows}"));
    for threads in ["1", "4"] {
        let args = ["build", "--kind", "joint", "--csv", "a,b,c", "--partial", "--rate", "0.1%"];
        let args = args.into_iter().chain(["--threads", threads, "-o", threads, "rows.csv"]);
        assert!(scratch.command(args).output().unwrap().status.success());
    }
    assert!(scratch.read("1") == scratch.read("4"), "the number of threads changes the filter");
    let info = scratch.info("1");
    assert_eq!((info["keys"].as_u64(), info["capacity"].as_u64()), (Some(10_000), Some(10_000)));
    // 24 bits are kept of a value's hash: of 10,000 values three pairs are expected to share theirs.
    let distinct = info["distinct_values"].as_str().unwrap();
    assert!(distinct.starts_with("a 7, b 9,99") && distinct.ends_with(", c 100"), "{distinct}");
    let found = scratch.run(["check", "1", "--count", "rows.csv"]).succeeds();
    assert_eq!(found.text(), "present  30,000\nabsent   0\n");
    let wrong: String =
        (0..10_000).map(|i| format!("{},{i},n{}\n", i % 7, (i + 1) % 100)).collect();
    scratch.write("wrong.csv", format!("a,b,c\n{wrong}"));
    // At 0.1 % of 10,000 rows more than 30 are taken for present once in 10^7 filters.
    let found = scratch.run(["check", "1", "--count", "--json", "wrong.csv"]).json();
    assert!(found["present"].as_u64().unwrap() <= 30, "{found}");
}

#[test]
fn a_filter_that_is_too_small_says_so() {
    let scratch = Scratch::new();
    let rows: String = (0..1000).map(|i| format!("{i},x\n")).collect();
    scratch.write("rows.csv", format!("a,b\n{rows}"));
    let args = [
        "build",
        "--kind",
        "joint",
        "--csv",
        "a,b",
        "--capacity",
        "100",
        "-o",
        "n.ibf",
        "rows.csv",
    ];
    let full = scratch.refuses(args, "", "n.ibf: the filter is full");
    assert_eq!(full.hint(), "build it with a larger --capacity\n");
}

// ------------------------------------------------------------------------------------------------------ other commands

#[test]
fn info_shows_the_attributes() {
    let scratch = things();
    let info = scratch.info("t.ibf");
    assert_eq!((&info["kind"], &info["keys"]), (&"joint".into(), &3.into()));
    assert_eq!(
        (&info["attributes"], &info["partial_queries"]),
        (&"size, color".into(), &false.into())
    );
    assert_eq!(info["hash"], "xxh3-64 seed 0, another for each attribute");
    let partial = scratch.info("p.ibf");
    assert_eq!(partial["partial_queries"], true);
    assert_eq!(partial["distinct_values"], "size 2, color 3");
    assert_eq!(scratch.run(["verify", "t.ibf", "p.ibf"]).succeeds().stderr, "");
}

#[test]
fn rows_are_added_and_removed() {
    let scratch = things();
    for filter in ["t.ibf", "p.ibf"] {
        let has = |size: &str| {
            let size = format!("size={size}");
            scratch.run(["check", filter, "--where", &size, "--where", "color=red"]).status == 0
        };
        scratch.write("more.csv", "color,size\nred,huge\nred,large\n");
        scratch.run(["add", filter, "more.csv"]).succeeds();
        assert!(has("huge") && has("large"));
        assert_eq!(scratch.info(filter)["keys"], 5);
        // (large, red) came twice by now, so it takes two removals.
        let removed = scratch.run(["remove", filter, "more.csv"]).succeeds();
        assert_eq!(removed.text(), "removed  2\nabsent   0\n");
        assert!(!has("huge") && has("large"));
        let removed = scratch.run(["remove", filter, "more.csv"]).succeeds();
        assert_eq!(removed.text(), "removed  1\nabsent   1\n");
        assert!(!has("large"));
        assert_eq!(
            scratch.run(["remove", filter, "more.csv"]).ends_with(1).text(),
            "removed  0\nabsent   2\n"
        );
    }
}

#[test]
fn rows_that_come_too_often_in_a_list_of_removals_are_refused() {
    let scratch = Scratch::new();
    let rows: String = (0..10_000).map(|i| format!("{i},{}\n", i * 7)).collect();
    scratch.write("all.csv", format!("a,b\n{rows}"));
    scratch.run(["build", "-o", "j.ibf", "--kind", "joint", "--csv", "a,b", "all.csv"]).succeeds();
    let some: String = rows.split_inclusive('\n').take(4500).collect();
    scratch.write("twice.csv", format!("a,b\n{some}{some}"));
    let run = scratch.refuses(["remove", "j.ibf", "twice.csv"], "", "j.ibf: 4,");
    assert!(run.stderr.contains("more often than they were inserted"), "{}", run.stderr);
    let count = scratch.run(["check", "--json", "j.ibf", "all.csv"]).succeeds().json();
    assert_eq!((&count["present"], &count["absent"]), (&10_000.into(), &0.into()));
}

#[test]
fn filters_of_rows_neither_merge_nor_keep_the_state_of_dedup() {
    let scratch = things();
    let merge = ["merge", "-o", "m.ibf", "t.ibf", "t.ibf"];
    let refused =
        scratch.refuses(merge, "", "cannot merge t.ibf and t.ibf: a joint filter cannot be merged");
    assert!(refused.hint().contains("build one filter from all inputs"));
    let intersect = ["merge", "--intersect", "-o", "m.ibf", "t.ibf", "p.ibf"];
    scratch.refuses(
        intersect,
        "",
        "cannot merge t.ibf and p.ibf: a joint filter cannot be intersected",
    );
    let dedup = ["dedup", "--state", "t.ibf"];
    scratch.refuses(dedup, "a\n", "t.ibf: holds a joint filter, not a dedup state");
}

#[test]
fn a_parallel_filter_of_the_library_is_asked_alike() {
    use ironbloom::Persist as _;
    use ironbloom::multi::{MultiFilter as _, ParallelBloom};
    let scratch = Scratch::new();
    let mut filter = ParallelBloom::with_rate(100, 1e-6, ["size", "color"]).unwrap();
    filter.insert(&["large", "red"]).unwrap();
    filter.insert(&["small", "green"]).unwrap();
    filter.save(scratch.path("pbf.ibf")).unwrap();
    scratch.run(["check", "pbf.ibf", "--where", "color=red"]).succeeds();
    scratch.run(["check", "pbf.ibf", "--where", "color=large"]).ends_with(1);
    // What a parallel filter cannot know.
    scratch.run(["check", "pbf.ibf", "--where", "size=large", "--where", "color=green"]).succeeds();
    let info = scratch.info("pbf.ibf");
    assert_eq!((&info["kind"], &info["attributes"]), (&"parallel".into(), &"size, color".into()));
    scratch.write("gone.csv", "size,color\nlarge,red\n");
    scratch.run(["remove", "pbf.ibf", "gone.csv"]).succeeds();
    scratch.run(["check", "pbf.ibf", "--where", "color=red"]).ends_with(1);
}

#[test]
fn damaged_filters_of_rows_are_refused() {
    let scratch = things();
    let good = scratch.read("p.ibf");
    for at in [100, 300, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        scratch.write("d.ibf", bytes);
        scratch.refuses(
            ["check", "d.ibf", "--where", "size=large"],
            "",
            "d.ibf: checksum mismatch",
        );
        scratch.refuses(["remove", "d.ibf", "things.csv"], "", "d.ibf: checksum mismatch");
    }
}

// --------------------------------------------------------------------------------------------------------- types of values

#[test]
fn what_the_user_says_of_values_counts_for_rows_too() {
    let scratch = Scratch::new();
    scratch.write("empty.csv", "a,b\n");
    scratch.write("numbers.csv", "a,b\n1,2\n3,4\n");
    let build = ["build", "-o", "t.ibf", "--kind", "joint", "--csv", "a,b", "--rate", "1e-6"];
    let build = |rest: &[&str]| {
        let done = scratch.command(build.iter().chain(rest)).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    // Values are text unless the user says so, also in a table without rows.
    build(&["--capacity", "100", "empty.csv"]);
    scratch.refuses(["add", "t.ibf", "--keys", "long", "numbers.csv"], "", "t.ibf: ");
    build(&["--capacity", "100", "--keys", "long", "empty.csv"]);
    scratch.run(["add", "t.ibf", "--keys", "long", "numbers.csv"]).succeeds();
    assert!(scratch.info("t.ibf").to_string().contains("a: integers"), "{}", scratch.info("t.ibf"));
    scratch.run(["check", "t.ibf", "--where", "a=3", "--where", "b=4"]).succeeds();
    // One that holds integers refuses text, as a filter of keys does.
    let refused = [
        ["check", "t.ibf", "--keys", "text", "numbers.csv"],
        ["add", "t.ibf", "--keys", "text", "numbers.csv"],
    ];
    for args in refused {
        scratch.refuses(args, "", "t.ibf: ");
    }
    let by_name = ["check", "t.ibf", "--keys", "text", "--where", "a=1", "--where", "b=2"];
    scratch.refuses(by_name, "", "t.ibf: ");
}
