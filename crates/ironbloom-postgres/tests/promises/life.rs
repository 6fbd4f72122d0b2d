//! What happens to tables and indexes in their lives.

use crate::common::Server;

/// A table with an index and enough pages for a segment, pending rows and a tail.
const TABLE: &str = "create table t (id serial, a int, b text) with (fillfactor = 50);
    insert into t (a, b) select i % 997, 'b' || i % 89 from generate_series(1, 20000) i;
    create index t_i on t using ironbloom (a, b);
    insert into t (a, b) select i % 997, 'b' || i % 89 from generate_series(1, 500) i;\n";

const CONDITIONS: [&str; 5] = [
    "a = 5",
    "a = 5 and b = 'b5'",
    "a in (1, 2, 3) and b = 'b2'",
    "b is null",
    "a = 5 or b = 'b17' and a = 17",
];

/// After each change, answers are those of the table, and the index passes its check.
fn holds(server: &Server, after: &str) {
    assert_eq!(server.compare("t", &CONDITIONS), CONDITIONS.len(), "{after}");
    server.sql("select ironbloom_check('t_i');");
}

#[test]
fn an_index_lives_through_whatever_happens_to_its_table() {
    let server = Server::start("life");
    server.sql(TABLE);
    holds(&server, "the build");
    for change in [
        "update t set a = a + 1 where id % 10 = 0;",
        "update t set b = null where id % 50 = 0;",
        "delete from t where id % 3 = 0; vacuum t;",
        "insert into t (a, b) select i, 'again' from generate_series(1, 3000) i;",
        "reindex index t_i;",
        "reindex index concurrently t_i;",
        "reindex table t;",
        "alter table t alter a type bigint; update t set a = 5 where id = 7;",
        "alter table t alter a type int; alter table t add d int default 3;",
        "vacuum full t;",
        "cluster t using t_pkey;",
        "delete from t where id > 5000; vacuum t;",
        "insert into t (a, b) select i % 997, 'grown' from generate_series(1, 30000) i;",
        "truncate t;",
        "insert into t (a, b) select i % 997, 'b' || i % 89 from generate_series(1, 9000) i;",
        "begin; truncate t; insert into t (a, b) values (5, 'b5'); rollback;",
        "begin; insert into t (a, b) select 5, 'lost' from generate_series(1, 9000); rollback;",
        "begin; insert into t (a, b) values (5, 'b5'); savepoint s; insert into t (a, b) values (5, 'gone'); rollback to s; commit;",
        "begin; insert into t (a, b) select 5, 'prepared' from generate_series(1, 5000); prepare transaction 'p';
         insert into t (a, b) select 5, 'beside' from generate_series(1, 5000); commit prepared 'p';",
        "begin; drop index t_i; rollback;",
        "begin; insert into t (a, b) select 5, 'x' from generate_series(1, 9000); drop table t; rollback;",
        "alter table t set unlogged; insert into t (a, b) values (5, 'unlogged');",
        "alter table t set logged;",
        "alter index t_i set (selectivity = 14); reindex index t_i;",
        "drop index t_i; create index concurrently t_i on t using ironbloom (a int4_ops (selectivity = 12), b);",
        "select ironbloom_seal('t_i');",
    ] {
        if change.contains("t_pkey") {
            server.sql("alter table t add primary key (id);");
        }
        server.sql(change);
        holds(&server, change);
    }
    assert_eq!(
        server.sql("select selectivity from ironbloom_columns('t_i') order by number;"),
        "12\n14".replace("14", "10")
    );
    server.sql("drop table t;");
}

#[test]
fn the_tail_is_short_after_a_load_and_its_rows_are_found() {
    let server = Server::start("tail");
    server.sql("create table t (a int, b text); create index t_i on t using ironbloom (a, b);");
    for rows in [10, 100, 5_000, 200_000] {
        server.sql(&format!("insert into t select random() * 10000, 'b' || (random() * 100)::int from generate_series(1, {rows});"));
        let tail: u32 =
            server.sql("select tail_pages from ironbloom_info('t_i');").parse().unwrap();
        assert!(tail <= 33, "{tail} pages after {rows} rows");
        server.compare("t", &["a = 5", "a = 77 and b = 'b3'", "b = 'b4' and a = 6"]);
    }
    let rows: String = (0..30_000).map(|i| format!("{}\tcopied{}\n", i % 777, i % 99)).collect();
    server.sql(&format!("copy t from stdin;\n{rows}\\.\n"));
    assert_eq!(server.sql("select count(*) from t where b like 'copied%';"), "30000");
    server.compare("t", &["a = 5 and b = 'copied5'", "b = 'copied98'", "a = 776"]);
    assert_eq!(server.sql("select ironbloom_check('t_i') > 0;"), "t");
    // Single rows, each its own transaction, on a table with room in old pages.
    server.sql("delete from t where a % 2 = 0; vacuum t;");
    server.sql(&"insert into t values (5, 'single');".repeat(300));
    let pending: u32 =
        server.sql("select pending_rows from ironbloom_info('t_i');").parse().unwrap();
    assert!(pending > 0, "rows came to sealed pages");
    server.compare("t", &["a = 5", "b = 'single'", "a = 5 and b = 'single'"]);
    server.sql("vacuum t;");
    assert_eq!(server.sql("select pending_rows, segments from ironbloom_info('t_i');"), "0|1");
    server.compare("t", &["a = 5", "b = 'single'"]);
}

#[test]
fn a_load_that_was_rolled_back_does_not_decide_about_buckets() {
    let server = Server::start("buckets");
    server.sql(
        "create table t (a int, b text); create index t_i on t using ironbloom (a, b);
         begin; insert into t select i, 'b' || i from generate_series(1, 9000) i; rollback;
         select ironbloom_seal('t_i');
         insert into t select i, 'b' || i from generate_series(1, 60000) i;
         select ironbloom_seal('t_i');",
    );
    // More than a hundred rows on a page, each with another value: 2^10 buckets for each of them.
    let buckets: u32 =
        server.sql("select min(buckets) from ironbloom_columns('t_i');").parse().unwrap();
    assert!(buckets > 100 << 10, "{buckets}");
    server.compare("t", &["a = 5", "b = 'b7'"]);
    server.sql("select ironbloom_check('t_i');");
}

#[test]
fn a_table_that_shrinks_gets_its_tail_back() {
    let server = Server::start("shrinks");
    server.sql(TABLE);
    server.sql("delete from t where id > 2000; vacuum t; vacuum t;");
    // On pages that have come back, rows are those of a tail: no entry for each of them.
    server.sql("insert into t (a, b) select i % 997, 'few' from generate_series(1, 2000) i;");
    let pending: u32 =
        server.sql("select pending_rows from ironbloom_info('t_i');").parse().unwrap();
    assert!(pending < 500, "{pending}");
    server.sql("insert into t (a, b) select i % 997, 'new' from generate_series(1, 60000) i;");
    let (sealed, pages) = {
        let printed = server.sql("select sealed_pages, heap_pages from ironbloom_info('t_i');");
        let (sealed, pages) = printed.split_once('|').unwrap();
        (sealed.parse::<u32>().unwrap(), pages.parse::<u32>().unwrap())
    };
    assert!(pages - sealed < 40 && pages > 300, "{sealed} of {pages}");
    holds(&server, "regrowth");
}

#[test]
fn temporary_unlogged_partitioned_partial_and_expression_indexes_answer() {
    let server = Server::start("kinds");
    let compared = server.sql(
        "create temp table m (a int); insert into m select i % 100 from generate_series(1, 30000) i;
         create index on m using ironbloom (a); insert into m select i % 100 from generate_series(1, 30000) i;
         select compare('m', array['a = 5', 'a = 105', 'a is null']);",
    );
    assert_eq!(compared, "3");
    server.sql(
        "create unlogged table u (a int); create index u_i on u using ironbloom (a);
         insert into u select i % 100 from generate_series(1, 30000) i;
         create table p (a int, b int) partition by range (a);
         create index on p using ironbloom (a, b);
         create table p1 partition of p for values from (0) to (500);
         create table p2 partition of p for values from (500) to (1000);
         insert into p select i % 1000, i % 77 from generate_series(1, 40000) i;
         create table e (a text, b int);
         insert into e select 'Name' || i % 1000, i from generate_series(1, 20000) i;
         create index e_i on e using ironbloom (lower(a), (b % 10)) where b > 100;
         insert into e select 'NAME' || i % 1000, i from generate_series(1, 20000) i;",
    );
    server.compare("u", &["a = 5", "a in (5, 6, 105)"]);
    server.compare("p", &["a = 5", "b = 7 and a = 84", "a in (4, 504) and b = 4"]);
    server.compare(
        "e",
        &[
            "lower(a) = 'name7' and b > 100",
            "b % 10 = 3 and lower(a) = 'name13' and b > 100",
            "lower(a) = 'name7' and b > 500",
        ],
    );
    for index in ["u_i", "p1_a_b_idx", "e_i"] {
        server.sql(&format!("select ironbloom_check('{index}');"));
    }
    let refused = server.try_sql("select ironbloom_info('p_a_b_idx');").unwrap_err();
    assert!(refused.contains("partitioned"), "{refused}");
    let refused =
        server.try_sql("create index b on u (a); select ironbloom_info('b');").unwrap_err();
    assert!(refused.contains("not an ironbloom index"), "{refused}");
    let refused = server
        .try_sql("create index on u using ironbloom (a) with (selectivity = 50);")
        .unwrap_err();
    assert!(refused.contains("selectivity"), "{refused}");
    for options in [
        "(a) with (selectivity = 0)",
        "(a int4_ops (selectivity = 0))",
        "(a int4_ops (selectivity = 21))",
    ] {
        let refused =
            server.try_sql(&format!("create index on u using ironbloom {options};")).unwrap_err();
        assert!(refused.contains("between \"1\" and \"20\""), "{refused}");
    }
}

#[test]
fn long_values_are_found_wherever_the_server_keeps_them() {
    let server = Server::start("toast");
    server.sql(
        "create table t (id int, a text, b text); alter table t alter a set storage external;
         insert into t select i, repeat('long ' || i % 50, 2000), 'b' || i from generate_series(1, 500) i;
         create index t_i on t using ironbloom (a, b);
         insert into t select i, repeat('long ' || i % 50, 2000), 'b' || i from generate_series(1, 300) i;
         delete from t where id % 7 = 0; update t set b = b || 'x' where id % 11 = 0;
         select ironbloom_seal('t_i');",
    );
    server.compare(
        "t",
        &["a = repeat('long 7', 2000)", "a = repeat('long 8', 2000) and b = 'b8'", "a = 'none'"],
    );
    server.sql("vacuum t; select ironbloom_check('t_i');");
}

#[test]
fn all_columns_that_an_index_may_have() {
    let server = Server::start("columns");
    let columns: Vec<String> = (0..32).map(|i| format!("c{i}")).collect();
    let values: Vec<String> = (0..32).map(|i| format!("(i * {} % 101)", i + 3)).collect();
    server.sql(&format!(
        "create table t ({0} int); insert into t select {1} from generate_series(1, 6000) i;
         create index t_i on t using ironbloom ({2}); insert into t select {1} from generate_series(1, 60) i;",
        columns.join(" int, "),
        values.join(", "),
        columns.join(", ")
    ));
    server.compare(
        "t",
        &["c31 = 5", "c0 = 3 and c31 = 34", "c7 = 10 and c8 = 11 and c9 = 12 and c30 = 33"],
    );
    server.sql("select ironbloom_check('t_i');");
}

/// Waits until a build is at work, as others see it.
fn build_at_work(server: &Server) -> String {
    let progress = "select phase, blocks_done > 0 and blocks_total > blocks_done from pg_stat_progress_create_index;";
    ironbloom_testing::wait_until(|| server.sql(progress).contains("|t"));
    server.sql(progress)
}

#[test]
fn a_build_shows_its_progress_and_can_be_cancelled() {
    let server = Server::start("cancel");
    // A build that takes long because of its expression.
    server.sql(
        "create table slow as select i as a, repeat('x', 500) as pad from generate_series(1, 6000) i;
         create function slowly(a int) returns int language plpgsql immutable as $$ begin perform pg_sleep(0.002); return a; end $$;",
    );
    let build = server.session("create index slow_i on slow using ironbloom (slowly(a));");
    let shown = build_at_work(&server);
    assert!(shown.starts_with("building index: scanning table"), "{shown}");
    server.sql("select pg_cancel_backend(pid) from pg_stat_progress_create_index;");
    let ended = build.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(error.contains("canceling statement due to user request"), "{error}");
    assert_eq!(server.sql("select count(*) from pg_class where relname = 'slow_i';"), "0");

    server.sql("create table t as select i as a, i as b from generate_series(1, 300000) i;");
    let cancelled = server
        .try_sql("set statement_timeout = '10ms'; create index t_i on t using ironbloom (a, b);");
    assert!(cancelled.unwrap_err().contains("statement timeout"));
    // Within little memory, cells go to a file.
    server.sql("set maintenance_work_mem = '1MB'; create index t_i on t using ironbloom (a, b); select ironbloom_check('t_i');");
    server.compare("t", &["a = 5", "b = 299999 and a = 299999"]);
    // Two values of a page that share a bucket are one cell.
    assert_eq!(
        server.sql("select segments, cells between 598000 and 600000 from ironbloom_info('t_i');"),
        "1|t"
    );
}

#[test]
fn scans_are_counted_and_vacuum_reports() {
    let server = Server::start("statistics");
    server.sql(TABLE);
    server.sql("set enable_seqscan = off; select count(*) from t where a = 5;");
    // A session's counters arrive a moment after it has ended.
    let scans = "select idx_scan from pg_stat_user_indexes where indexrelname = 't_i';";
    ironbloom_testing::wait_until(|| server.sql(scans) == "1");
    server.sql("vacuum (verbose) t; analyze t;");
    assert_eq!(server.sql("select reltuples from pg_class where relname = 't';"), "20500");
    assert_eq!(server.sql("select rows from ironbloom_info('t_i');"), "20500");
    server.sql("drop index t_i; create index concurrently t_i on t using ironbloom (a);");
    assert_eq!(server.sql("select reltuples from pg_class where relname = 't';"), "20500");
}

#[test]
fn text_is_found_by_collations_that_ignore_case() {
    let server = Server::start("collations");
    if !server.make_collation("folded", "und-u-ks-level2", false) {
        return;
    }
    server.sql(
        "create table t (a text collate folded, b text);
         insert into t select case when i % 2 = 0 then 'name' else 'NAME' end || i % 500, 'b' || i % 99 from generate_series(1, 20000) i;
         create index t_i on t using ironbloom (a, b);",
    );
    assert_eq!(
        server.sql("set enable_seqscan = off; select count(distinct a collate \"C\") from t where a = 'Name7';"),
        "1"
    );
    server.compare("t", &["a = 'Name7'", "a = 'nAmE8' and b = 'b8'", "a in ('NAME9', 'none')"]);
    server.sql("select ironbloom_check('t_i');");
}

#[test]
fn updates_within_a_page_stay_there_where_the_server_allows_it() {
    let server = Server::start("hot");
    server.sql(
        "create table t (a int, b int) with (fillfactor = 50); insert into t select i, i from generate_series(1, 5000) i;
         create index t_i on t using ironbloom (a); vacuum t;",
    );
    // Some find no room.
    let hot = |least: u32| {
        let sql = format!("select pg_stat_get_tuples_hot_updated('t'::regclass) > {least};");
        ironbloom_testing::wait_until(|| server.sql(&sql) == "t");
    };
    server.sql("update t set b = b + 1;");
    hot(4_000);
    let version: u32 = server.sql("show server_version_num;").parse().unwrap();
    server.sql("vacuum t; update t set a = a + 1;");
    if version >= 160_000 {
        // The index has no entry for rows.
        hot(6_000);
    }
    server.compare("t", &["a = 5", "a = 5001", "a = 1", "b = 7 and a = 7"]);
    server.sql("select ironbloom_check('t_i');");
}
