//! What a database administrator sees: all indexes with advice, checks that go on, work in progress.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use crate::common::Server;

/// Ends the server, damages the first page of an index, and begins again.
fn damage(server: &Server, index: &str) {
    let path = server.sql(&format!("checkpoint; select pg_relation_filepath('{index}');"));
    server.stop();
    let file = OpenOptions::new().write(true).open(server.folder.join("data").join(path)).unwrap();
    file.write_all_at(b"damage", 100).unwrap();
    server.resume();
}

const LIST: &str = "select index, \"table\", part_of, bytes > 0 and table_bytes > 0, segments, tail_pages, pending_rows, advice
    from ironbloom_indexes order by index::text;";

#[test]
fn one_view_shows_all_indexes_and_what_to_do_about_them() {
    let server = Server::start("view");
    server.sql(
        "create table plain (a int, b text); insert into plain select i, 'b' || i from generate_series(1, 20000) i;
         create index plain_i on plain using ironbloom (a, b);
         create table parts (a int) partition by hash (a);
         create table part0 partition of parts for values with (modulus 2, remainder 0);
         create table part1 partition of parts for values with (modulus 2, remainder 1);
         create index parts_i on parts using ironbloom (a); insert into parts select generate_series(1, 20000);
         vacuum plain, parts;",
    );
    assert_eq!(
        server.sql(LIST),
        "part0_a_idx|part0|parts_i|t|1|1|0|\npart1_a_idx|part1|parts_i|t|1|1|0|\nplain_i|plain||t|1|0|0|"
    );
    // Pages of one value each, and then pages of many.
    server.sql(
        "create table drift (a int) with (autovacuum_enabled = off); insert into drift select i / 2000 from generate_series(1, 20000) i;
         create index drift_i on drift using ironbloom (a); insert into drift select i from generate_series(1, 200000) i;
         create table broken (a int); insert into broken select generate_series(1, 20000);
         create index broken_i on broken using ironbloom (a);",
    );
    let built = "create index concurrently invalid_i on plain using ironbloom ((1 / (a - 5)));";
    assert!(server.try_sql(built).unwrap_err().contains("division by zero"));
    damage(&server, "broken_i");
    let advice = |index: &str| {
        server.sql(&format!(
            "select advice from ironbloom_indexes where index = '{index}'::regclass;"
        ))
    };
    assert!(
        advice("drift_i").starts_with("REINDEX: a page of the table has"),
        "{}",
        advice("drift_i")
    );
    assert!(advice("invalid_i").starts_with("it is not valid"), "{}", advice("invalid_i"));
    let broken = advice("broken_i");
    assert!(broken.contains("\"broken_i\" is damaged") && broken.contains("REINDEX"), "{broken}");
    assert_eq!(advice("plain_i"), "");
    server.sql("reindex index drift_i; reindex index broken_i; drop index invalid_i;");
    assert_eq!(server.sql("select count(*) from ironbloom_indexes where advice is not null;"), "0");
}

#[test]
fn the_view_shows_each_user_what_it_may_read() {
    let server = Server::start("view-users");
    server.sql(
        "create role alice; create role watch; grant pg_stat_scan_tables to watch;
         create table hers (a int); alter table hers owner to alice; create index hers_i on hers using ironbloom (a);
         create table secret (a int); create index secret_i on secret using ironbloom (a);",
    );
    let seen = |role: &str| {
        server.sql(&format!("set role {role}; select index from ironbloom_indexes order by 1;"))
    };
    assert_eq!(seen("alice"), "hers_i");
    assert_eq!(seen("watch"), "hers_i\nsecret_i");
    let refused =
        server.try_sql("set role alice; select * from ironbloom_verify('hers_i');").unwrap_err();
    assert!(refused.contains("permission denied"), "{refused}");
    // Whoever looks keeps nothing from those who change tables.
    server.sql("begin; select * from ironbloom_indexes; alter table secret add b int; commit;");
}

#[test]
fn a_check_of_all_indexes_goes_on_after_a_damaged_one() {
    let server = Server::start("check-all");
    for table in ["a", "b", "c"] {
        server.sql(&format!(
            "create table {table} (a int, b text); insert into {table} select i % 500, 'b' || i from generate_series(1, 20000) i;
             create index {table}_i on {table} using ironbloom (a, b);"
        ));
    }
    damage(&server, "b_i");
    let all = "select i.index, v.cells > 0, v.problem from ironbloom_indexes i, ironbloom_verify(i.index, DEEP) v order by 1;";
    for deep in ["false", "true"] {
        let checked = server.sql(&all.replace("DEEP", deep));
        let lines: Vec<&str> = checked.lines().collect();
        assert_eq!(lines.len(), 3, "{checked}");
        assert_eq!((lines[0], lines[2]), ("a_i|t|", "c_i|t|"), "{checked}");
        assert!(lines[1].starts_with("b_i||page 0 of index \"b_i\" is damaged"), "{checked}");
    }
}

#[test]
fn a_table_that_is_locked_does_not_hold_up_the_view() {
    let server = Server::start("view-locked");
    for table in ["a", "b", "c"] {
        server.sql(&format!(
            "create table {table} (a int); insert into {table} select generate_series(1, 20000);
             create index {table}_i on {table} using ironbloom (a);"
        ));
    }
    let locked = server.session_of(
        ["begin; lock table b in access exclusive mode; select pg_sleep(1000);".to_owned()]
            .into_iter(),
    );
    let sleeps = "select count(*) from pg_stat_activity where wait_event = 'PgSleep';";
    ironbloom_testing::wait_until(|| server.sql(sleeps) == "1");
    let view = "set lock_timeout = '1s'; select index, bytes > 0 and table_bytes > 0, segments, advice from ironbloom_indexes order by 1;";
    let shown = server.sql(view);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!((lines[0], lines[2]), ("a_i|t|1|", "c_i|t|1|"), "{shown}");
    assert!(lines[1].starts_with("b_i|||") && lines[1].contains("is locked"), "{shown}");
    server.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep';",
    );
    drop(locked.wait_with_output());
    assert!(server.sql(view).contains("b_i|t|1|\n"));
    // Nothing stays locked.
    server.sql("begin; select * from ironbloom_indexes; select 1 / (count(*) = 0)::int from pg_locks where relation in ('a'::regclass, 'a_i'::regclass); commit;");
}

/// Tables whose indexes take long because of their expression.
const SLOW: &str = "create table slow (a int, pad text);
    create function slowly(a int) returns int language plpgsql immutable as $$ begin perform pg_sleep(0.002); return a; end $$;";

/// What the server says about the index that is worked on, until it says this.
fn wait_for(server: &Server, phase: &str) {
    let shown = "select phase, index_relid::regclass, command is null, blocks_total > 0 from pg_stat_progress_create_index;";
    ironbloom_testing::wait_until(|| server.sql(shown).starts_with(phase));
}

fn cancel(server: &Server, session: ironbloom_testing::Running) {
    server.sql("select pg_cancel_backend(pid) from pg_stat_progress_create_index;");
    let error = String::from_utf8_lossy(&session.wait_with_output().unwrap().stderr).into_owned();
    assert!(error.contains("canceling statement due to user request"), "{error}");
    assert_eq!(server.sql("select count(*) from pg_stat_progress_create_index;"), "0");
}

#[test]
fn seals_show_their_progress() {
    let server = Server::start("progress-seal");
    let version: u32 = server.sql("show server_version_num;").parse().unwrap();
    if version < 140_000 {
        eprintln!("SKIPPED: this server does not tell extensions what it reports");
        return;
    }
    server.sql(SLOW);
    // Fewer pages than a commit seals.
    server.sql(
        "create index slow_i on slow using ironbloom (slowly(a)); insert into slow select i, repeat('x', 500) from generate_series(1, 400) i;",
    );
    let session = server.session("select ironbloom_seal('slow_i');");
    wait_for(&server, "building index: scanning table|slow_i|t|t");
    cancel(&server, session);
    server.sql("create or replace function slowly(a int) returns int language sql immutable as 'select a'; select ironbloom_seal('slow_i');");
    server.compare("slow", &["slowly(a) = 7"]);
}

#[test]
fn concurrent_builds_show_their_progress() {
    let server = Server::start("progress-concurrently");
    server.sql(SLOW);
    server.sql("insert into slow select i, repeat('x', 500) from generate_series(1, 4000) i;");
    let session =
        server.session("create index concurrently slow_i on slow using ironbloom (slowly(a));");
    wait_for(&server, "index validation: scanning index|slow_i|f|t");
    cancel(&server, session);
}
