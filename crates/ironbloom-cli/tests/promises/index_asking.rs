//! Ways to ask: where rows are, lists of values in tables, names and texts in any case.

use crate::program::Scratch;

/// Two tables with their index.
fn two_tables() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("a.csv", "Id,City\n1,Oslo\n2,Bergen\n3,OSLO\n");
    scratch.write("b.csv", "Id,City\n4,oslo\n5,Århus\n6,Bergen\n");
    scratch.run(["index", "build", "a.csv", "b.csv", "-o", "t.ibx"]).succeeds();
    scratch
}

fn csv<const N: usize>(scratch: &Scratch, args: [&str; N]) -> String {
    let args = ["index", "find", "t.ibx"].into_iter().chain(args).chain(["--format", "csv"]);
    let output = scratch.command(args).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_file_and_the_row_of_what_is_found_can_be_selected() {
    let scratch = two_tables();
    let places = csv(&scratch, ["City = 'Bergen'", "--select", "_row,Id,_file"]);
    assert_eq!(places, "_row,Id,_file\n1,2,a.csv\n2,6,b.csv\n");
    let alone = csv(&scratch, ["Id = 5", "--select", "_file,_row"]);
    assert_eq!(alone, "_file,_row\nb.csv,1\n");
    let ordered = csv(&scratch, ["City = 'Bergen'", "--select", "_row", "--order", "Id desc"]);
    assert_eq!(ordered, "_row\n2\n1\n");
    let ordered =
        csv(&scratch, ["Id > 0", "--select", "Id", "--order", "_row,_file", "--limit", "3"]);
    assert_eq!(ordered, "Id\n1\n4\n2\n");
    // A column of that name is that column.
    scratch.write("own.csv", "_row,x\nmine,1\n");
    scratch.run(["index", "build", "own.csv", "-o", "t.ibx"]).succeeds();
    assert_eq!(csv(&scratch, ["x = 1", "--select", "_row,_file"]), "_row,_file\nmine,own.csv\n");
    let parquet = scratch
        .shell("ironbloom index find t.ibx 'x = 1' --select _file --format parquet > p.parquet");
    assert_eq!(parquet.status, 0, "{}", parquet.stderr);
}

#[test]
fn values_come_from_columns_of_tables_and_from_several_lists() {
    let scratch = two_tables();
    scratch.write("ids.csv", "name,key\nx,2\ny,5\nz,\n");
    let found = csv(&scratch, ["--values", "ids.csv", "--column", "Id=key", "--select", "Id"]);
    assert_eq!(found, "Id\n2\n5\n");
    let shell =
        "ironbloom index find t.ibx 'Id in (1, 6)' --select Id --format parquet > some.parquet";
    assert_eq!(scratch.shell(shell).status, 0);
    let found = csv(&scratch, ["--values", "some.parquet", "--column", "Id", "--select", "Id"]);
    assert_eq!(found, "Id\n1\n6\n");
    scratch.write("cities.txt", "Bergen\nOslo\n");
    let both =
        ["--values", "cities.txt", "--column", "City", "--values", "ids.csv", "--column", "Id=key"];
    let args =
        [both[0], both[1], both[2], both[3], both[4], both[5], both[6], both[7], "--select", "Id"];
    assert_eq!(csv(&scratch, args), "Id\n2\n");
    // A list of lines may be called .csv.
    scratch.write("lines.csv", "3\n4\n");
    let found = csv(&scratch, ["--values", "lines.csv", "--column", "Id", "--select", "Id"]);
    assert_eq!(found, "Id\n3\n4\n");
    let refused =
        scratch.run(["index", "find", "t.ibx", "--values", "ids.csv", "--column", "Id=none"]);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("no column none"), "{}", refused.stderr);
    let refused =
        scratch.run(["index", "find", "t.ibx", "--values", "a", "--values", "b", "--column", "Id"]);
    assert!(refused.stderr.contains("2 --values and 1 --column"), "{}", refused.stderr);
}

#[test]
fn texts_and_names_are_found_in_any_case_if_that_is_asked_for() {
    let scratch = two_tables();
    let ids = |condition: &str| csv(&scratch, [condition, "--select", "Id"]);
    assert_eq!(ids("City ilike 'oslo'"), "Id\n1\n3\n4\n");
    assert_eq!(ids("City ilike 'ÅR%'"), "Id\n5\n");
    assert_eq!(ids("City not ilike '%O'"), "Id\n2\n5\n6\n");
    assert_eq!(ids("City like 'oslo'"), "Id\n4\n");
    let refused = scratch.run(["index", "find", "t.ibx", "city = 'Oslo'"]);
    assert!(refused.stderr.contains("no column city"), "{}", refused.stderr);
    let args =
        ["city = 'Oslo' and not ID is null", "--ignore-case", "--select", "ID", "--order", "cITY"];
    assert_eq!(csv(&scratch, args), "Id\n1\n");
}
