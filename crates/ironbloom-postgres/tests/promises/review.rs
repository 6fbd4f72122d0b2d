//! The review in DESIGN.md: who reaches the extension, and with what. It names every entry point that there is, and no other.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::Server;

const DESIGN: &str = include_str!("../../DESIGN.md");
const HANDLER: &str = include_str!("../../src/handler.rs");

/// A part of the review, from its heading to the next one.
fn section(heading: &str) -> &'static str {
    let start = format!("\n### {heading}\n");
    let (_, rest) = DESIGN.split_once(&start).expect(heading);
    rest.split("\n### ").next().unwrap()
}

/// The first cells of a table's rows.
fn entries(section: &str) -> String {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    rows.filter_map(|row| row.split(" | ").next()).collect::<Vec<_>>().join("\n")
}

/// What is in backticks, without arguments.
fn names(text: &str) -> BTreeSet<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.map(|name| name.split('(').next().unwrap().to_owned()).collect()
}

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// All sources of the extension.
fn sources() -> Vec<String> {
    let mut sources = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                sources.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    sources
}

/// Callbacks that are no functions of the access method or of SQL, with their rows in the review.
const OTHERS: [(&str, &str); 3] = [
    ("at_end", "callback at the end of transactions"),
    ("choose", "hook of the planner"),
    ("release", "callback when memory is freed"),
];

#[test]
fn the_review_has_every_callback_of_the_access_method() {
    let assigned = HANDLER.lines().filter_map(|line| line.trim().strip_prefix("routine."));
    let callbacks: BTreeSet<String> = assigned
        .filter_map(|line| line.split_once(" = Some("))
        .map(|(name, _)| name.to_owned())
        .collect();
    assert!(callbacks.contains("aminsert"), "{callbacks:?}");
    let reviewed = names(&entries(section("Called by the server")));
    let reviewed: BTreeSet<String> =
        reviewed.into_iter().filter(|name| name.starts_with("am")).collect();
    assert_eq!(reviewed, callbacks);
}

#[test]
fn the_review_has_every_function_that_the_server_may_call() {
    let table = entries(section("Called by the server"));
    let mut found = BTreeSet::new();
    for source in sources() {
        for (at, _) in source.match_indices("extern \"C-unwind\" fn ") {
            let name = &source[at + "extern \"C-unwind\" fn ".len()..];
            found.insert(name.split(['(', '<']).next().unwrap().to_owned());
        }
    }
    // What the server looks for in every library, and what the macro declares for functions of SQL.
    for name in ["Pg_magic_func", "$info"] {
        assert!(found.remove(name), "{name}");
    }
    let called = |name: &str| HANDLER.contains(&format!("::{name});"));
    let rest: BTreeSet<String> =
        found.into_iter().filter(|name| !called(name) && !name.starts_with("ironbloom_")).collect();
    let mut expected: BTreeSet<String> =
        OTHERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    expected.insert("_PG_init".into());
    assert_eq!(rest, expected);
    for row in OTHERS.map(|(_, row)| row).into_iter().chain(["`_PG_init`"]) {
        assert!(table.lines().any(|line| line.starts_with(row)), "no row for {row}");
    }
}

/// Functions of the extension, with or without a type in their arguments that SQL has no values of, and for PUBLIC or not.
fn functions(server: &Server, internal: bool, public: bool) -> BTreeSet<String> {
    words(&server.sql(&format!(
        "select distinct p.proname from pg_depend d join pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid
         where d.refclassid = 'pg_extension'::regclass and d.deptype = 'e'
             and d.refobjid = (select oid from pg_extension where extname = 'ironbloom')
             and ('internal'::regtype = any (p.proargtypes) and p.pronargs = 1) = {internal}
             and has_function_privilege('public', p.oid, 'execute') = {public};"
    )))
}

#[test]
fn the_review_has_every_function_of_sql_with_who_may_call_it() {
    let server = Server::start("review");
    let public = section("Functions that PUBLIC may call");
    let (table, closed) = public.split_once("\nNot for PUBLIC: ").unwrap();
    let ours = |text: &str| -> BTreeSet<String> {
        names(text).into_iter().filter(|name| name.starts_with("ironbloom_")).collect()
    };
    let (closed, _) = closed.split_once("superusers").unwrap();
    assert_eq!(functions(&server, false, false), ours(closed));
    let mut reviewed = ours(&entries(table));
    let views = words(&server.sql(
        "select c.relname from pg_depend d join pg_class c on d.classid = 'pg_class'::regclass and c.oid = d.objid
         where d.refclassid = 'pg_extension'::regclass and d.deptype = 'e'
             and d.refobjid = (select oid from pg_extension where extname = 'ironbloom')
             and has_table_privilege('public', c.oid, 'select');",
    ));
    assert!(!views.is_empty());
    for view in &views {
        assert!(reviewed.remove(view), "{view}");
    }
    let mut callable = functions(&server, false, true);
    // The last step of an aggregate has an internal argument only.
    let steps = functions(&server, true, true);
    let by_server = ours(&entries(section("Called by the server")));
    callable.extend(steps.difference(&by_server).cloned());
    assert_eq!(callable, reviewed);
    assert!(by_server.is_subset(&steps), "{by_server:?} {steps:?}");
    assert_eq!(functions(&server, true, false), BTreeSet::new());
    // No function changes who runs it.
    let definers = "select count(*) from pg_proc where proname like 'ironbloom%' and prosecdef;";
    assert_eq!(server.sql(definers), "0");
}
