//! Nothing that happens at commit can fail the transaction, and maintenance fails no insert and no VACUUM.

use crate::common::Server;

const TABLE: &str = "create table z (a int); create index z_i on z using ironbloom (a);\n";

/// A transaction that inserts many rows, changes the table in some way and commits.
fn commits(server: &Server, change: &str) {
    server.sql(&format!("drop table if exists z cascade; {TABLE}"));
    let load = "insert into z select generate_series(1, 20000);";
    server
        .try_sql(&format!("begin; {load} {change}"))
        .unwrap_or_else(|error| panic!("{change}: {error}"));
    if server.sql("select count(*) from pg_class where relname = 'z_i';") == "1" {
        assert_eq!(
            server.compare("z", &["a = '1'", "a = '19999'", "a in ('5', '6', '7')"]),
            3,
            "{change}"
        );
        server.sql("select ironbloom_check('z_i');");
    }
}

#[test]
fn a_transaction_commits_whatever_became_of_what_it_inserted() {
    let server = Server::start("commits-ddl");
    for change in [
        "commit;",
        "truncate z; insert into z values (1); commit;",
        "truncate z; commit;",
        "truncate z; insert into z select generate_series(1, 9000); commit;",
        "delete from z; commit;",
        "alter table z alter a type bigint; insert into z values (1); commit;",
        "alter table z alter a type text; commit;",
        "alter table z add b int default 5; alter table z drop a; commit;",
        "create index z_c on z (a); cluster z using z_c; insert into z values (1); commit;",
        "reindex table z; insert into z values (1); commit;",
        "drop index z_i; commit;",
        "drop index z_i; create index z_i on z using ironbloom (a); commit;",
        "drop table z; commit;",
        "savepoint s; truncate z; insert into z values (1); rollback to s; commit;",
        "savepoint s; insert into z select generate_series(1, 20000); rollback to s; truncate z; insert into z values (1); commit;",
        "savepoint s; create index z_j on z using ironbloom (a); insert into z select generate_series(1, 20000); rollback to s; commit;",
        "truncate z; insert into z values (1); prepare transaction 'p'; commit prepared 'p';",
        "prepare transaction 'p'; rollback prepared 'p';",
        "alter table z set unlogged; truncate z; commit;",
        "truncate z; insert into z values (1); commit and chain; insert into z select generate_series(1, 20000); commit;",
        "savepoint s; truncate z; savepoint t; insert into z values (1); commit;",
    ] {
        commits(&server, change);
    }
}

#[test]
fn a_procedure_commits_as_often_as_it_likes() {
    let server = Server::start("commits-procedure");
    server.sql(FAILING);
    server.sql(
        "create procedure load() language plpgsql as $$ begin
             for i in 1..4 loop
                 insert into z select 8, repeat('x', 7000) from generate_series(1, 60); commit;
                 begin insert into z values (8, 'in a block'); exception when others then raise; end;
             end loop; end $$;",
    );
    server.sql("call load();");
    assert_eq!(server.sql("select tail_pages <= 33 from ironbloom_info('z_i');"), "t");
    server.sql(&format!("reindex index z_i; {FAIL} truncate z; insert into z values (8, ''); {MEND} insert into z values (7, '');"));
    server.sql(&format!("{FAIL} call load();"));
    found_after_all(&server, "245");
}

#[test]
fn a_cancelled_seal_ends_an_insert_but_not_a_commit() {
    let server = Server::start("commits-cancel");
    server.sql(FAILING);
    server.sql(
        "create or replace function f(a int) returns int language plpgsql immutable as $$ begin
             if a = 7 then perform pg_sleep(300); end if; return a; end $$;",
    );
    let refused = server.try_sql(
        "set statement_timeout = '10s'; insert into z select 8, repeat('x', 7000) from generate_series(1, 4200);",
    );
    assert!(refused.unwrap_err().contains("statement timeout"));
    server.sql("create or replace function f(a int) returns int language plpgsql immutable as $$ begin return a; end $$; truncate z;
        insert into z values (7, repeat('x', 7000)), (8, repeat('x', 7000));
        create or replace function f(a int) returns int language plpgsql immutable as $$ begin
             if a = 7 then perform pg_sleep(300); end if; return a; end $$;");
    let session = server.session(
        "begin; insert into z select 8, repeat('x', 7000) from generate_series(1, 100); commit;",
    );
    let sleeps = "select count(*) from pg_stat_activity where wait_event = 'PgSleep';";
    ironbloom_testing::wait_until(|| server.sql(sleeps) == "1");
    server.sql("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'PgSleep';");
    let done = session.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    found_after_all(&server, "101");
}

#[test]
fn vacuum_works_beside_parallel_workers() {
    let server = Server::start("commits-parallel");
    server.sql(
        "create table t (a int, b int, c int); insert into t select i, i, i from generate_series(1, 50000) i;
         create index t_a on t (a); create index t_b on t (b); create index t_i on t using ironbloom (a, (b + 1));
         insert into t select i, i, i from generate_series(1, 3000) i; delete from t where a % 3 = 0;
         set min_parallel_index_scan_size = 0; set max_parallel_maintenance_workers = 2; vacuum (parallel 2) t;
         select ironbloom_check('t_i');",
    );
    assert_eq!(server.sql("select tail_pages <= 1 from ironbloom_info('t_i');"), "t");
    server.compare("t", &["a = 5", "b + 1 = 77", "a = 7 and b + 1 = 8"]);
}

#[test]
fn temporary_tables_commit_after_a_large_insert() {
    let server = Server::start("commits-temporary");
    for end in ["", "on commit delete rows", "on commit drop"] {
        let load = "insert into z select generate_series(1, 20000);";
        server.sql(&format!(
            "begin; create temp table z (a int) {end}; create index z_i on z using ironbloom (a); {load}
             truncate z; insert into z values (1); commit;
             begin; create temp table if not exists z (a int) {end}; {load} commit;"
        ));
    }
}

/// An index whose function can be made to fail.
const FAILING: &str = "drop table if exists z; create table z (a int, pad text); alter table z alter pad set storage plain;
    create or replace function f(a int) returns int language plpgsql immutable as $$ begin return a; end $$;
    create index z_i on z using ironbloom (f(a)); insert into z values (7, repeat('x', 7000)), (8, repeat('x', 7000));\n";
const FAIL: &str =
    "create or replace function f(a int) returns int language plpgsql immutable as $$ begin
    if a = 7 then raise exception 'seven'; end if; return a; end $$;\n";
const MEND: &str = "create or replace function f(a int) returns int language plpgsql immutable as $$ begin return a; end $$;\n";

fn found_after_all(server: &Server, rows: &str) {
    assert_eq!(server.sql("select count(*) from z where a = 8;"), rows);
    server.sql(MEND);
    server.compare("z", &["f(a) = 8", "f(a) = 7"]);
    server.sql("vacuum z; select ironbloom_check('z_i');");
    server.compare("z", &["f(a) = 8", "f(a) = 7"]);
    assert_eq!(server.sql("select tail_pages <= 1 from ironbloom_info('z_i');"), "t");
}

#[test]
fn a_commit_stands_when_sealing_fails() {
    let server = Server::start("commits-sealing");
    let load = "insert into z select 8, repeat('x', 7000) from generate_series(1, 100);";
    for end in ["commit;", "prepare transaction 'p'; commit prepared 'p';"] {
        server.sql(FAILING);
        // What fails is a row that was there before.
        server.sql(&format!("{FAIL} begin; {load} {end} {load}"));
        found_after_all(&server, "201");
    }
}

#[test]
fn a_transaction_is_prepared_whatever_index_functions_look_at() {
    let server = Server::start("commits-prepare");
    server.sql(FAILING);
    // The server refuses to prepare a transaction that has looked at temporary tables.
    server.sql(
        "create or replace function f(a int) returns int language plpgsql immutable as $$ begin
             if a = 7 then perform count(*) from pg_temp.mine; end if; return a; end $$;
         create temp table mine (a int);
         begin; insert into z select 8, repeat('x', 7000) from generate_series(1, 100); prepare transaction 'p';
         commit prepared 'p';",
    );
    found_after_all(&server, "101");
}

#[test]
fn an_insert_stands_when_sealing_fails() {
    let server = Server::start("commits-insert");
    server.sql(FAILING);
    server.sql(FAIL);
    server.sql("insert into z select 8, repeat('x', 7000) from generate_series(1, 4200);");
    found_after_all(&server, "4201");
}

#[test]
fn a_vacuum_goes_on_when_sealing_fails() {
    let server = Server::start("commits-vacuum");
    server.sql(FAILING);
    server.sql(&format!(
        "{FAIL} delete from z where a = 8; insert into z values (8, repeat('x', 7000));"
    ));
    server.sql("vacuum (freeze) z;");
    assert_eq!(server.sql("select age(relfrozenxid) < 5 from pg_class where relname = 'z';"), "t");
    let refused = server.try_sql("select ironbloom_seal('z_i');").unwrap_err();
    assert!(refused.contains("seven"), "{refused}");
    found_after_all(&server, "1");
}

#[test]
fn an_index_function_may_insert_into_its_own_table() {
    let server = Server::start("commits-recursion");
    server.sql(FAILING);
    server.sql(
        "create function more() returns void language plpgsql as $$ begin
             insert into z select 9, repeat('x', 7000) from generate_series(1, 40); end $$;
         create or replace function f(a int) returns int language plpgsql immutable as $$ begin
             if a = 7 then perform more(); end if; return a; end $$;
         insert into z select 8, repeat('x', 7000) from generate_series(1, 100);",
    );
    server.sql("insert into z select 8, repeat('x', 7000) from generate_series(1, 100);");
    found_after_all(&server, "201");
}
