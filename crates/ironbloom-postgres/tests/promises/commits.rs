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
    server.sql("create index z_a on z using ironbloom (a); call load();");
    assert_eq!(server.sql("select tail_pages <= 33 from ironbloom_info('z_a');"), "t");
    server.sql(&format!("reindex index z_i; {FAIL} truncate z; insert into z values (8, ''); {MEND} insert into z values (7, '');"));
    server.sql(&format!("{FAIL} call load();"));
    found_after_all(&server, "245");
}

#[test]
fn a_cancelled_seal_ends_an_insert() {
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
    found_after_all(&server, "1");
}

#[test]
fn vacuum_works_beside_parallel_workers() {
    let server = Server::start("commits-parallel");
    server.sql(
        "create table t (a int, b int, c int); insert into t select i, i, i from generate_series(1, 50000) i;
         create index t_a on t (a); create index t_b on t (b); create index t_i on t using ironbloom (a, b);
         insert into t select i, i, i from generate_series(1, 3000) i; delete from t where a % 3 = 0;
         set min_parallel_index_scan_size = 0; set max_parallel_maintenance_workers = 2; vacuum (parallel 2) t;
         select ironbloom_check('t_i');",
    );
    assert_eq!(server.sql("select tail_pages <= 1 from ironbloom_info('t_i');"), "t");
    server.compare("t", &["a = 5", "b = 77", "a = 7 and b = 8"]);
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
    let load = "insert into z select i, '' from generate_series(1, 300000) i;";
    for end in ["commit;", "prepare transaction 'p'; commit prepared 'p';"] {
        server.sql("drop table if exists z; create table z (a int, pad text); create index z_i on z using ironbloom (a, pad);");
        // What does not fit into memory has no place on disk.
        let printed = server.warnings(&format!(
            "set work_mem = '1GB'; set maintenance_work_mem = '1MB'; set temp_file_limit = 0; begin; {load} {end} select count(*) from z;"
        ));
        assert!(printed.contains("was not tidied") && printed.contains("temp"), "{printed}");
        assert_eq!(server.sql("select tail_pages > 33 from ironbloom_info('z_i');"), "t");
        server.compare("z", &["a = 8", "a = 299999"]);
        server.sql("vacuum z; select ironbloom_check('z_i');");
        server.compare("z", &["a = 8", "a = 299999"]);
        assert_eq!(server.sql("select tail_pages <= 1 from ironbloom_info('z_i');"), "t");
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

/// Code of users that does something, as `act`, whenever it runs on the account of maintenance, and says so in the log.
const ACTING: &str = "create function act() returns void language plpgsql as $$ begin end $$;
    create function ran(a int) returns int language plpgsql immutable as $$ begin
        if a = 7 and current_setting('search_path') = 'pg_catalog, pg_temp' then
            raise log 'acted'; perform public.act(); end if;
        return a; end $$;
    create function ran(a int, bigint) returns bigint language plpgsql immutable as $$ begin return public.ran(a); end $$;
    create type num;
    create function num_in(cstring) returns num language internal immutable strict as 'int4in';
    create function num_out(num) returns cstring language internal immutable strict as 'int4out';
    create type num (input = num_in, output = num_out, like = int4);
    create cast (num as int) without function; create cast (int as num) without function;
    create function num_is(num, num) returns boolean language internal immutable strict as 'int4eq';
    create function num_hash(num) returns int language plpgsql immutable as $$ begin return public.ran($1::int); end $$;
    create function num_hash(num, bigint) returns bigint language plpgsql immutable as $$ begin return public.ran($1::int); end $$;
    create operator = (leftarg = num, rightarg = num, function = num_is, hashes);
    create operator class num_ops default for type num using hash as operator 1 =,
        function 1 num_hash(num), function 2 num_hash(num, bigint);
    create type holder as (n num);
    create operator class ran_ops for type int using ironbloom as operator 1 =, function 1 ran(int, bigint);\n";

/// Kinds of indexes that run code of users, which is seen when they are sealed.
const RUNNING: [&str; 5] = [
    "create index z_i on z using ironbloom (ran(a));",
    "create index z_i on z using ironbloom (a) where ran(a) > 0;",
    "create index z_i on z using ironbloom (a ran_ops);",
    "create index z_i on z using ironbloom (p);",
    "create index z_i on z using ironbloom (ps);",
];

/// Makes the table with this index, and a row for which its code acts.
fn acts(server: &Server, index: &str) {
    server.sql(&format!(
        "drop table if exists z; create table z (a int, p holder, ps num[], pad text); alter table z alter pad set storage plain;
         {index} insert into z values (7, row(7::num)::holder, array[7::num], repeat('x', 7000));"
    ));
}

fn rows(number: u32) -> String {
    format!(
        "insert into z select 8, row(8::num)::holder, array[8::num], repeat('x', 7000) from generate_series(1, {number});"
    )
}

/// How often code of users has run on the account of maintenance.
fn acted(server: &Server) -> usize {
    server.log().matches("acted").count()
}

/// No process of the server has ended, and none has lost track of what it holds.
fn is_unharmed(server: &Server, what: &str) {
    let log = server.log();
    for harm in ["PANIC", "terminated by signal", "leak", "was not closed", "still referenced"] {
        assert!(!log.contains(harm), "{what}: {harm}: {log}");
    }
}

#[test]
fn no_code_of_users_runs_at_commit() {
    let server = Server::start("commits-code");
    server.sql(ACTING);
    for index in RUNNING {
        for end in ["commit;", "prepare transaction 'p'; commit prepared 'p';"] {
            acts(&server, index);
            let before = acted(&server);
            server.sql(&format!("begin; {} {end}", rows(100)));
            assert_eq!(acted(&server), before, "{index} {end}");
            assert_eq!(
                server.sql("select tail_pages from ironbloom_info('z_i');"),
                "101",
                "{index}"
            );
        }
        // Otherwise nothing would have been seen.
        let before = acted(&server);
        server.sql("vacuum z;");
        assert!(acted(&server) > before, "{index}");
        assert_eq!(
            server.sql("select tail_pages <= 1 from ironbloom_info('z_i');"),
            "t",
            "{index}"
        );
    }
    // Functions in C are sealed at commit: of the server, and of types made of its types.
    server.sql(
        "create type plain as (a int, t text); create domain positive as int check (value > 0); create type mood as enum ('sad', 'glad');
         create table y (a plain[], b positive, c mood, d int4range, e positive[]); create index y_i on y using ironbloom (a, b, c, d, e);
         insert into y select array[(i, 't')::plain], i, 'sad', int4range(i, i + 1), array[i] from generate_series(1, 20000) i;",
    );
    assert_eq!(server.sql("select tail_pages <= 33 from ironbloom_info('y_i');"), "t");
}

/// Goes through all that seals, with code of users that does this.
fn nothing_remains(server: &Server, action: &str) {
    server.sql(&format!(
        "create or replace function act() returns void language plpgsql as $$ declare c refcursor; r record; begin {action} end $$;"
    ));
    for (index, entry, acts_then) in [
        (RUNNING[0], format!("begin; {} commit;", rows(100)), false),
        (RUNNING[0], rows(100), false),
        (RUNNING[1], rows(100), false),
        (RUNNING[0], format!("begin; {} commit;", rows(4_200)), true),
        (RUNNING[1], format!("begin; savepoint s; {} release s; commit;", rows(4_200)), true),
        (RUNNING[3], format!("begin; {} rollback;", rows(4_200)), true),
        (RUNNING[0], format!("{} vacuum z;", rows(100)), true),
        (RUNNING[0], format!("{} select ironbloom_seal('z_i');", rows(100)), true),
        (RUNNING[0], format!("{} select ironbloom_check('z_i');", rows(100)), false),
    ] {
        acts(server, index);
        let before = acted(server);
        // The next statements are those that would be lost.
        let after = "select count(*) from pg_cursors; create table important (a int); insert into important values (1);
            select sum(a) from important; drop table important; begin; fetch 1 from mine; rollback;";
        let printed = server.warnings(&format!("\\set ON_ERROR_STOP 0\n{entry}\n{after}"));
        let errors =
            printed.lines().filter(|line| line.contains("ERROR") || line.contains("WARNING"));
        let errors: Vec<&str> = errors.collect();
        assert!(
            errors.len() == 1 && errors[0].contains("cursor \"mine\" does not exist"),
            "{entry}: {printed}"
        );
        assert_eq!(server.sql("select count(*) > 0 from z;"), "t");
        is_unharmed(server, &entry);
        assert!(!acts_then || acted(server) > before, "{entry}");
    }
}

#[test]
fn a_cursor_of_an_index_function_ends_with_its_transaction() {
    let server = Server::start("commits-cursor");
    server.sql(ACTING);
    nothing_remains(
        &server,
        "c := 'mine'; if not exists (select from pg_cursors where name = 'mine') then
             open c for execute 'select a.oid from pg_catalog.pg_class a join pg_catalog.pg_class b using (oid)'; fetch c into r; end if;",
    );
}

#[test]
fn an_index_function_may_read_a_foreign_table() {
    let server = Server::start("commits-foreign");
    server.sql(ACTING);
    if server.sql("select count(*) from pg_available_extensions where name = 'postgres_fdw';")
        == "0"
    {
        eprintln!("SKIPPED: this server has no postgres_fdw");
        return;
    }
    let folder = server.folder.display();
    server.sql(&format!(
        "create table remote (a int); create extension postgres_fdw;
         create server loop foreign data wrapper postgres_fdw options (host '{folder}', dbname 'postgres');
         create user mapping for public server loop options (user 'postgres');
         create foreign table there (a int) server loop options (schema_name 'public', table_name 'remote');"
    ));
    nothing_remains(&server, "perform count(*) from public.there;");
}

#[test]
fn a_vacuum_goes_on_after_a_concurrent_build_has_failed() {
    let server = Server::start("commits-concurrent");
    server.sql(FAILING);
    server.sql(FAIL);
    let failed = server.try_sql("create index concurrently z_j on z using ironbloom (f(a));");
    assert!(failed.unwrap_err().contains("seven"));
    let left = "select indisready, indisvalid from pg_index where indexrelid = 'z_j'::regclass;";
    assert_eq!(server.sql(left), "t|f");
    server.sql("drop index z_i; insert into z select 9, '' from generate_series(1, 100); delete from z where a = 9;");
    server.sql("vacuum z; vacuum (freeze) z;");
    assert_eq!(server.sql("select age(relfrozenxid) < 5 from pg_class where relname = 'z';"), "t");
    server.sql(&format!("{MEND} reindex index concurrently z_j; select ironbloom_check('z_j');"));
    server.compare("z", &["f(a) = 8", "f(a) = 7"]);
}

#[test]
fn a_parallel_vacuum_runs_no_index_functions() {
    let server = Server::start("commits-parallel-fails");
    server.sql(
        "create function f(a int) returns int language plpgsql immutable as $$ begin return a; end $$;
         create table z (a int, b int); create index z_a on z (a); create index z_b on z (b);
         create index z_i on z using ironbloom (f(a)); create index z_p on z using ironbloom (a);
         insert into z select i, i from generate_series(1, 50000) i; delete from z where a % 3 = 0;",
    );
    server.sql(FAIL);
    let parallel = "set min_parallel_index_scan_size = 0; set max_parallel_maintenance_workers = 2; vacuum (parallel 2) z;";
    let printed = server.warnings(parallel);
    assert!(printed.contains("\"z_i\" was not sealed"), "{printed}");
    assert!(!printed.contains("z_p"), "{printed}");
    assert_eq!(server.sql("select tail_pages <= 1 from ironbloom_info('z_p');"), "t");
    let printed = server.warnings("vacuum (parallel 0) z;");
    assert!(printed.contains("was not tidied: seven"), "{printed}");
    server.sql(&format!("{MEND} vacuum (parallel 0) z; select ironbloom_check('z_i');"));
    assert_eq!(server.sql("select tail_pages <= 1 from ironbloom_info('z_i');"), "t");
    // A short tail is normal.
    assert!(!server.warnings(parallel).contains("WARNING"));
    server.compare("z", &["f(a) = 8", "f(a) = 7"]);
}
