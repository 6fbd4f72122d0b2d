//! As whom code of users runs: whatever evaluates an index expression on its own account does so as the table's owner,
//! within a security-restricted operation and a safe search path.

use crate::common::Server;

/// Mallory owns a table whose index calls a function of hers; where that runs as a superuser, so does what she likes.
const MALLORY: &str = "create role mallory login; create schema m authorization mallory; set session authorization mallory;
    create table m.t (a int, pad text);
    create function m.rise() returns void language plpgsql as $$ begin
        execute 'alter role mallory superuser'; exception when insufficient_privilege then null; end $$;
    create function m.evil(a int) returns int language plpgsql immutable as $$ begin
        if a = 7 then perform m.rise(); end if; return a; end $$;
    create index t_i on m.t using ironbloom (m.evil(a));
    create function m.fill() returns void language sql security definer as $$
        insert into m.t select i % 1000, '' from generate_series(1, 60000) i $$;
    grant usage on schema m to public; grant insert on m.t to public;
    reset session authorization;\n";

fn is_superuser(server: &Server) -> bool {
    server.sql("select rolsuper from pg_roles where rolname = 'mallory';") == "t"
}

#[test]
fn a_superusers_commit_does_not_run_an_index_function_as_superuser() {
    let server = Server::start("owners-commit");
    server.sql(MALLORY);
    server.sql("select m.fill();");
    assert!(!is_superuser(&server), "by a function that is a security definer");
    server.sql(
        "begin; set local role mallory; insert into m.t select i % 1000, '' from generate_series(1, 60000) i;
         reset role; commit;",
    );
    assert!(!is_superuser(&server), "by a role that was set");
    server.sql(
        "alter table m.t alter pad set storage plain; insert into m.t select 8, repeat('x', 7000) from generate_series(1, 4200);",
    );
    assert!(!is_superuser(&server), "by an insert");
    // The seal itself was made.
    assert_eq!(server.sql("select tail_pages < 4096 from ironbloom_info('m.t_i');"), "t");
}

#[test]
fn a_superusers_check_does_not_run_an_index_function_as_superuser() {
    let server = Server::start("owners-check");
    server.sql(MALLORY);
    server.sql("set role mallory; select m.fill(); reset role; select ironbloom_check('m.t_i');");
    assert!(!is_superuser(&server));
}

#[test]
fn constants_of_an_index_expression_are_folded_as_the_owner() {
    let server = Server::start("owners-constants");
    server.sql(MALLORY);
    // The expression's constant part is computed when the expression is prepared, before any row is read.
    server.sql(
        "set role mallory; create index t_j on m.t using ironbloom ((a + m.evil(7))); select m.fill();",
    );
    for sql in
        ["select ironbloom_check('m.t_j');", "select ironbloom_seal('m.t_j');", "vacuum m.t;"]
    {
        server.sql(sql);
        assert!(!is_superuser(&server), "{sql}");
    }
}

#[test]
fn an_inserter_may_lack_what_the_index_function_needs() {
    let server = Server::start("owners-inserter");
    server.sql(
        "create role owner; create role guest; create schema o authorization owner; set role owner;
         create table o.t (a int);
         create function o.f(a int) returns int language plpgsql immutable as 'begin return a + 1; end';
         revoke execute on function o.f from public;
         create index t_i on o.t using ironbloom (o.f(a));
         create function o.fill() returns void language sql security definer as
             'insert into o.t select generate_series(1, 950000)';
         grant usage on schema o to guest; reset role;",
    );
    server.sql("set session authorization guest; select o.fill();");
    assert_eq!(server.sql("select count(*) from o.t;"), "950000");
    assert_eq!(server.sql("select tail_pages < 4096 from ironbloom_info('o.t_i');"), "t");
    server.compare("o.t", &["o.f(a) = 77"]);
}

/// Tells as whom it runs, once it has been told to: the executor calls it for each row, too, as whoever inserts.
const TELLING: &str = "
    create schema w authorization owner; set role owner;
    create table w.t (a int, pad text); alter table w.t alter pad set storage plain;
    create function w.tell() returns void language plpgsql as $$ begin end $$;
    create function w.whose(a int) returns int language plpgsql immutable as $$ begin
        if a = 7 then perform w.tell(); end if; return a; end $$;
    create index t_i on w.t using ironbloom (w.whose(a));
    insert into w.t values (7, repeat('x', 7000)), (8, repeat('x', 7000));
    grant usage on schema w to public; grant all on w.t to public; reset role;\n";
const TELL: &str = "
    create or replace function w.tell() returns void language plpgsql as $$
    declare restricted boolean := false; begin
        begin create temp table mine (a int); drop table mine; exception when insufficient_privilege then restricted := true; end;
        raise log 'as [%, %, %]', current_user, restricted, current_setting('search_path');
    end $$;\n";

/// Runs something that evaluates the expression of the rows that are there, and says as whom it was.
fn as_whom(server: &Server, before: &str, entry: &str) -> Vec<String> {
    server.sql(&format!("drop schema if exists w cascade; {TELLING}{before}{TELL}"));
    let known = told(server).len();
    server.sql(entry);
    ironbloom_testing::wait_until(|| told(server).len() > known);
    told(server).split_off(known)
}

fn told(server: &Server) -> Vec<String> {
    let log = server.log();
    let told = log.lines().filter_map(|line| line.split_once("as [")?.1.split_once(']'));
    told.map(|(told, _)| told.to_owned()).collect()
}

const OWNER: &str = "owner, t, pg_catalog, pg_temp";

#[test]
fn every_entry_runs_index_expressions_as_the_owner_restricted() {
    let server = Server::start("owners-entries");
    server.sql("create role owner; grant temp on database postgres to owner;");
    let many = |pages: u32| {
        format!("insert into w.t select 8, repeat('x', 7000) from generate_series(1, {pages});")
    };
    let entries = [
        ("insert", "", format!("begin; {} rollback;", many(4_200))),
        ("vacuum", "", "vacuum w.t;".to_owned()),
        ("ironbloom_seal", "", "select ironbloom_seal('w.t_i');".to_owned()),
        ("ironbloom_check", "reindex index w.t_i;", "select ironbloom_check('w.t_i');".to_owned()),
        (
            "deep check",
            "reindex index w.t_i;",
            "select ironbloom_check('w.t_i', deep => true);".to_owned(),
        ),
        ("reindex concurrently", "", "reindex index concurrently w.t_i;".to_owned()),
        (
            "create index concurrently",
            "",
            "create index concurrently t_j on w.t using ironbloom ((w.whose(a)));".to_owned(),
        ),
    ];
    for (name, before, entry) in entries {
        let told = as_whom(&server, before, &entry);
        // The server itself sets a safe path since version 17 where it builds an index; we do so always.
        assert!(told.iter().all(|told| told == OWNER), "{name}: {told:?}");
    }
}

#[test]
fn autovacuum_runs_index_expressions_as_the_owner_restricted() {
    let server = Server::start("owners-autovacuum");
    server.configure("autovacuum = on\nautovacuum_naptime = 1s\n");
    server.stop();
    server.resume();
    server.sql("create role owner; grant temp on database postgres to owner;");
    let due = "alter table w.t set (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0); delete from w.t where a = 8;";
    let told = as_whom(&server, "", due);
    assert!(told.iter().all(|told| told == OWNER), "{told:?}");
}

#[test]
fn logical_replication_runs_index_expressions_as_the_owner_restricted() {
    let server = Server::start("owners-replication");
    server.configure("wal_level = logical\n");
    server.stop();
    server.resume();
    server.sql(
        "create role owner; grant temp on database postgres to owner; create database source;",
    );
    server.sql(
        "\\c source\ncreate schema w; create table w.t (a int, pad text); create publication p for table w.t;
         select pg_create_logical_replication_slot('s', 'pgoutput');",
    );
    let folder = server.folder.display();
    let subscribe = format!(
        "create subscription s connection 'host=''{folder}'' dbname=source user=postgres' publication p
            with (create_slot = false, slot_name = 's', copy_data = false);"
    );
    let entry =
        "\\c source\ninsert into w.t select 8, repeat('x', 7000) from generate_series(1, 4200);";
    let told = as_whom(&server, &subscribe, entry);
    server.sql("alter subscription s disable; alter subscription s set (slot_name = none); drop subscription s;");
    assert!(told.iter().all(|told| told == OWNER), "{told:?}");
}

#[test]
fn a_look_inside_is_for_those_who_may_read_the_table() {
    let server = Server::start("owners-info");
    server.sql(
        "create role owner; create role guest; create role reader; create role watcher; grant pg_stat_scan_tables to watcher;
         create table t (a int); alter table t owner to owner; create index t_i on t using ironbloom (a); grant select on t to reader;",
    );
    for function in
        ["ironbloom_info", "ironbloom_columns", "ironbloom_segments", "ironbloom_status"]
    {
        let ask = |role: &str| {
            server.try_sql(&format!("set role {role}; select count(*) from {function}('t_i');"))
        };
        for role in ["owner", "reader", "watcher"] {
            ask(role).unwrap();
        }
        let refused = ask("guest").unwrap_err();
        assert!(refused.contains("permission denied"), "{function}: {refused}");
    }
    // Not even locked: who may not read a table learns nothing of it, and does not wait in its queue.
    let locked = server.session("begin; lock table t; select pg_sleep(300);");
    let sleeps = "select count(*) from pg_stat_activity where wait_event = 'PgSleep';";
    ironbloom_testing::wait_until(|| server.sql(sleeps) == "1");
    for (index, refused) in [("t", "is not an ironbloom index"), ("t_i", "permission denied")] {
        for function in ["ironbloom_info", "ironbloom_seal"] {
            let asked =
                format!("set role guest; set lock_timeout = '10s'; select {function}('{index}');");
            let error = server.try_sql(&asked).unwrap_err();
            assert!(error.contains(refused), "{function} of {index}: {error}");
        }
    }
    drop(locked);
    server.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep';",
    );
    for refused in ["select ironbloom_check('t_i');", "select ironbloom_seal('t_i');"] {
        let error = server.try_sql(&format!("set role reader; {refused}")).unwrap_err();
        assert!(error.contains("permission denied") || error.contains("must be owner"), "{error}");
    }
}
