//! Row types that change under an index: the server hashes stored rows otherwise from then on, and tells no index.

use crate::common::Server;
use crate::damage::make_older;

/// A server with such a table. `None` if it cannot hash rows.
fn start(name: &str) -> Option<Server> {
    let server = Server::start(name);
    if server.sql("show server_version_num;").parse::<u32>().unwrap() < 140_000 {
        eprintln!("SKIPPED: this server cannot hash rows");
        return None;
    }
    make(&server);
    Some(server)
}

/// Makes a table with a row type in a column, and within all that can hold one.
fn make(server: &Server) {
    server.sql(
        "drop table if exists t, other cascade; drop type if exists pair, nested cascade;
         create type pair as (a int, b text, c int); create domain pair_domain as pair; create type span as range (subtype = pair);
         create type nested as (p pair, n int); create table other (a int, b text, c int);
         create table t (id int, p pair, l pair[], d pair_domain, r span, m span_multirange, n nested, nl nested[], o other)
             with (fillfactor = 80);
         create function pair_of(i int) returns pair language sql immutable as $$ select jsonb_populate_record(null::public.pair,
             jsonb_build_object('a', i % 500, 'b', 'b' || i % 500, 'c', i % 3)) $$;
         create or replace function fill(first int, last int) returns void language sql as $$
             insert into t select i, x, array[x], x, span(x, x, '[]'), span_multirange(span(x, x, '[]')), y, array[y], jsonb_populate_record(null::other, to_jsonb(x))
             from generate_series(first, last) i, pair_of(i) x,
                 jsonb_populate_record(null::nested, jsonb_build_object('p', to_jsonb(x), 'n', i % 500)) y $$;
         select fill(1, 3000); create index t_i on t using ironbloom (id, p, l, d, r, m, n, nl, o);",
    );
}

/// Questions for a row that each of these columns has, as the types are now.
const COLUMNS: [&str; 8] = ["p", "l", "d", "r", "m", "n", "nl", "o"];

/// Asks for the values of some rows, by index and by table.
fn compare(server: &Server) {
    let conditions: Vec<String> = COLUMNS
        .iter()
        .flat_map(|column| {
            let value = |id: u32| format!("(select {column} from t where id = {id} limit 1)");
            [
                format!("{column} = {}", value(77)),
                format!("{column} = any (array[{}, {}])", value(78), value(3_003)),
                format!("{column} = {} and id = 79", value(79)),
                format!("{column} = {}", value(3_303)),
                format!("{column} = {}", value(3_603)),
            ]
        })
        // A list of arrays is an array of their elements.
        .filter(|condition| !condition.starts_with("l = any") && !condition.starts_with("nl = any"))
        .collect();
    let conditions: Vec<&str> = conditions.iter().map(String::as_str).collect();
    server.compare("t", &conditions);
}

/// Whether the index is used to ask for the value of a row, which it is if it is worth it.
fn is_used(server: &Server, column: &str) -> bool {
    let asked =
        format!("explain select from t where {column} = (select {column} from t where id = 77);");
    server.sql(&asked).contains(&format!("Index Cond: ({column} = "))
}

const ADVICE: &str = "select advice from ironbloom_indexes where index = 't_i'::regclass;";

#[test]
fn rows_are_found_after_their_type_has_changed() {
    let Some(server) = start("row-types") else { return };
    for change in [
        "alter type pair add attribute z int;",
        "alter type pair drop attribute b;",
        "alter type nested add attribute z text;",
        "alter type nested drop attribute n;",
        "alter table other add column z int;",
        "alter table other drop column b;",
    ] {
        make(&server);
        compare(&server);
        assert!(COLUMNS.iter().all(|column| is_used(&server, column)), "{change}");
        assert_eq!(server.sql(ADVICE), "");
        server.sql(change);
        compare(&server);
        server.sql("select fill(3001, 3400); delete from t where id between 1000 and 2000; vacuum t; select fill(3401, 4000);");
        compare(&server);
        // Only those that have it inside are asked without the index; other conditions still use it.
        let is_affected = |column: &str| match change.split(' ').nth(2).unwrap() {
            "pair" => column != "o",
            "nested" => column.starts_with('n'),
            _ => column == "o",
        };
        for column in COLUMNS {
            assert_eq!(is_used(&server, column), !is_affected(column), "{change} {column}");
        }
        let plan = server.sql("explain select from t where id = 79;");
        assert!(plan.contains("on t_i"), "{plan}");
        assert!(server.sql(ADVICE).starts_with("REINDEX: a row type"), "{}", server.sql(ADVICE));
        for check in ["ironbloom_check('t_i')", "ironbloom_check('t_i', deep => true)"] {
            let found = server.try_sql(&format!("select {check};")).unwrap_err();
            assert!(found.contains("row type") && found.contains("REINDEX"), "{found}");
        }
        server.sql("reindex index t_i;");
        compare(&server);
        assert!(COLUMNS.iter().all(|column| is_used(&server, column)), "{change}");
        assert_eq!(server.sql(ADVICE), "");
        server.sql("select ironbloom_check('t_i', deep => true);");
    }
}

#[test]
fn a_plan_that_was_made_before_finds_rows_after_the_type_has_changed() {
    let Some(server) = start("row-types-plan") else { return };
    // The session has the table locked, so nothing makes it look at the catalogue between its questions.
    let script = "set plan_cache_mode = force_generic_plan; set enable_seqscan = off;
        prepare asked(pair) as select count(*) from t where p = $1;
        begin; execute asked((77, 'b77', 2)); execute asked((77, 'b77', 2)); select pg_advisory_lock(1);
        execute asked((77, 'b77', 2)); commit;";
    let mut holder = server
        .session_of(["select pg_advisory_lock(1); select pg_sleep(1000);".to_owned()].into_iter());
    let waiting = |event: &str| {
        format!("select count(*) from pg_stat_activity where wait_event = '{event}';")
    };
    ironbloom_testing::wait_until(|| server.sql(&waiting("PgSleep")) == "1");
    let asking = server.session(script);
    ironbloom_testing::wait_until(|| server.sql(&waiting("advisory")) == "1");
    server.sql("alter type pair add attribute z int; select fill(3001, 4600); select ironbloom_seal('t_i');");
    server.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep';",
    );
    let done = asking.wait_with_output().unwrap();
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(output.trim(), "2\n2\n\n4", "{}", String::from_utf8_lossy(&done.stderr));
    let _ = holder.wait();
}

#[test]
fn rows_are_inserted_after_their_type_has_got_values_without_a_hash() {
    let Some(server) = start("row-types-unhashed") else { return };
    server.sql(
        "create table u (id int, p pair, l pair[]); insert into u select i, pair_of(i), array[pair_of(i)] from generate_series(1, 5000) i;
         create index u_i on u using ironbloom (id, p, l);
         alter type pair add attribute j json; delete from u where id between 1000 and 3000; vacuum u;
         insert into u select i, pair_of(i), array[pair_of(i)] from generate_series(5001, 6500) i;
         select ironbloom_seal('u_i'); vacuum u;",
    );
    server.compare("u", &["id = 77", "id = 5100", "id in (78, 5101)"]);
    let refused = server.try_sql("reindex index u_i;").unwrap_err();
    assert!(refused.contains("no hash function") && refused.contains("HINT"), "{refused}");
}

#[test]
fn an_index_that_knows_nothing_of_its_row_types_finds_all_rows() {
    let Some(server) = start("row-types-older") else { return };
    make_older(&server, 1);
    server.sql("alter type pair drop attribute b;");
    compare(&server);
    assert!(server.sql(ADVICE).starts_with("REINDEX: a row type"), "{}", server.sql(ADVICE));
    server.sql("select fill(3001, 4000); vacuum t;");
    compare(&server);
    server.sql("reindex index t_i;");
    assert!(COLUMNS.iter().all(|column| is_used(&server, column)));
    compare(&server);
}

/// What is written to the index stays, also if the transaction that has changed the type is rolled back.
#[test]
fn rows_are_found_after_a_change_of_their_type_was_rolled_back() {
    let Some(server) = start("row-types-rolled-back") else { return };
    for (tail, sealed) in [
        ("select fill(3001, 3300);", "select ironbloom_seal('t_i'); rollback;"),
        ("select fill(3301, 3600);", "savepoint s; select fill(10001, 14000); rollback;"),
        (
            "select fill(3601, 3900);",
            "select fill(10001, 14000); prepare transaction 'p'; rollback prepared 'p';",
        ),
    ] {
        server.sql(&format!("reindex index t_i; {tail}"));
        server.sql(&format!("begin; alter type pair add attribute z int; alter type nested drop attribute n; {sealed}"));
        compare(&server);
    }
    server.sql("reindex index t_i;");
    assert!(COLUMNS.iter().all(|column| is_used(&server, column)));
    compare(&server);
}
