//! Of the pages that an index names, only rows that may be wanted are rechecked, and none of them is missed.

use crate::common::Server;

/// Columns of fixed length, one that was dropped, one of varying length, and some behind it and added later.
const TABLE: &str = "create type mood as enum ('sad', 'ok', 'happy');
    create table t (id int, gone bigint, b bool, s smallint, u uuid, ts timestamp, f float8, c \"char\", e mood, m macaddr,
        n int, note int, v text, behind int) with (fillfactor = 40);
    create function fill(first int, last int) returns void language sql as $$
        insert into t (id, b, s, u, ts, f, c, e, m, n, note, v, behind)
        select nullif(i % 701, 3), i % 2 = 0, nullif(i % 53, 5), md5((i % 97)::text)::uuid, timestamp '2026-01-01' + i % 89 * interval '1 hour',
            i % 83, chr(65 + i % 20)::\"char\", (enum_range(null::mood))[1 + i % 3], ('08:00:2b:01:02:' || lpad(to_hex(i % 79), 2, '0'))::macaddr,
            nullif(i % 499, i % 7), 0, repeat('v', i % 9) || i % 73, i % 71
        from generate_series(first, last) i $$;
    select fill(1, 4000);
    alter table t drop gone; alter table t add late int default 7; alter table t add later int;
    select fill(4001, 6000);
    update t set late = id % 10, later = id % 11 where id % 5 = 0;
    create index t_i on t using ironbloom (id, b, s, u, ts, f, c, e, m, n, v, behind, late, later);\n";

const CONDITIONS: &[&str] = &[
    "id = 17",
    "id = 17::bigint",
    "id is null",
    "id is null and s = 7",
    "s = 9 and n = 20",
    "s is null and id = 6",
    "u = md5('5')::uuid",
    "u = md5('5')::uuid and ts = timestamp '2026-01-01' + interval '5 hours'",
    "f = 12 and c = 'D'",
    "f = 12::real and e = 'ok'",
    "m = '08:00:2b:01:02:11' and b",
    "n = 33",
    "n in (1, 2, 3, 44, 55, 66, 77, 88, 99, 111, 122, 133) and s in (2, 3, 5, 7)",
    "n is null and id = 6",
    "id = 17 and v = 'v17'",
    "behind = 12 and id = 99",
    "v = 'vv5' and s = 5",
    "late = 7 and id = 23",
    "late = 0 and later = 10",
    "later is null and id = 24",
    "id = 17 or n = 33 and s = 11",
];

fn holds(server: &Server) {
    assert_eq!(server.compare("t", CONDITIONS), CONDITIONS.len());
}

#[test]
fn rows_are_found_in_every_shape_that_they_have() {
    let server = Server::start("rows");
    server.sql(TABLE);
    holds(&server);
    // Chains of updates within pages: committed, rolled back, one upon the other, and pruned.
    for change in [
        "update t set note = note + 1 where id % 3 = 0;",
        "begin; update t set note = 5 where id % 2 = 0; rollback;",
        "update t set note = note + 1 where id % 4 = 0; update t set note = note + 1 where id % 6 = 0;",
        "begin; update t set note = 9 where id % 5 = 0; savepoint s; update t set note = 10 where id % 10 = 0; rollback to s; commit;",
        "begin; select * from t where id % 7 = 0 for update; savepoint s; update t set note = 11 where id % 14 = 0; commit;",
        "update t set n = n + 1, s = s where id % 9 = 0;",
        "delete from t where id % 13 = 0; update t set note = 1 where id % 3 = 1;",
        "vacuum t;",
        "update t set id = id + 1 where id % 50 = 0; select fill(1, 200);",
        "select ironbloom_seal('t_i');",
    ] {
        server.sql(change);
        holds(&server);
    }
    let chains = "select pg_stat_get_tuples_hot_updated('t'::regclass) > 1000;";
    ironbloom_testing::wait_until(|| server.sql(chains) == "t");
    server.sql("select ironbloom_check('t_i');");
}

/// Indexes of integers only, whose values are read where they are in rows without nulls.
#[test]
fn integers_of_all_widths_are_found_beside_nulls() {
    let server = Server::start("integers");
    // What follows the indexed columns keeps rows with nulls as long as those without.
    server.sql(
        "create table t (gone int, a smallint, b int, c bigint, d smallint, rest text);
         create function fill(first int, last int) returns void language sql as $$
             insert into t (a, b, c, d, rest) select case when i % 7 <> 0 then i % 501 - 250 end, case when i % 11 <> 0 then (i % 499) * 4000000 - 1000000000 end,
                 case when i % 13 <> 0 then (i % 503 - 251) * 5000000000 end, i % 17, repeat('x', 60) from generate_series(first, last) i $$;
         select fill(1, 6000); alter table t drop gone; select fill(6001, 12000);
         create index t_i on t using ironbloom (d, c, a, b);",
    );
    let conditions = [
        "a = -3",
        "b = -996000000",
        "c = -1250000000000",
        "c = 0 and a = 1",
        "a is null and d = 5",
        "b is null and c = 5000000000",
        "c is null and a in (-1, 0, 1)",
        "d = 3 and b = 4000000 - 1000000000",
    ];
    server.compare("t", &conditions);
    // Pages that are sealed later.
    server.sql("select fill(12001, 60000);");
    server.compare("t", &conditions);
    server.sql("update t set a = null where b % 3 = 0; vacuum t; select ironbloom_check('t_i');");
    server.compare("t", &conditions);
}

#[test]
fn rows_that_are_older_than_a_column_are_found() {
    let server = Server::start("columns-added");
    server.sql(
        "create table t (a int, b int); insert into t select i % 300, i from generate_series(1, 20000) i;
         alter table t add late int default 7; alter table t add later bigint;
         create index t_i on t using ironbloom (a, late, later);
         update t set later = a where b % 10 = 0; insert into t select i % 300, i, i % 9, i % 5 from generate_series(1, 5000) i;",
    );
    server.compare(
        "t",
        &[
            "a = 5 and late = 7",
            "late = 7 and later = 3",
            "later is null and a = 9",
            "late = 8 and a = 8",
        ],
    );
    server.sql("select ironbloom_check('t_i');");
}

#[test]
fn an_old_snapshot_finds_its_versions_of_rows() {
    let server = Server::start("snapshot");
    server.sql(TABLE);
    let list: Vec<String> =
        CONDITIONS.iter().map(|condition| format!("$q${condition}$q$")).collect();
    let old = server.session(&format!(
        "begin isolation level repeatable read; select count(*) from t; select pg_sleep(1.5);
         select 'compared ' || compare('t', array[{0}]); select 'rows ' || count(*) from t where note = 0;
         set enable_seqscan = off; select 'found ' || count(*) from t where id = 18 and note = 0; commit;\n",
        list.join(", ")
    ));
    let sleeps = "select count(*) from pg_stat_activity where wait_event = 'PgSleep';";
    ironbloom_testing::wait_until(|| server.sql(sleeps) == "1");
    let found = server.sql("select count(*) from t where id = 18;");
    let rows = server.sql("select count(*) from t;");
    for round in 0..4 {
        server.sql(&format!("update t set note = note + 1, n = n + {round}; vacuum t;"));
    }
    holds(&server);
    let done = old.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(printed.contains(&format!("compared {}", CONDITIONS.len())), "{printed}");
    assert!(printed.contains(&format!("rows {rows}")), "{printed}");
    assert!(printed.contains(&format!("found {found}")), "{printed}");
}

#[test]
fn only_rows_with_the_wanted_values_are_rechecked() {
    let server = Server::start("recheck");
    server.sql(
        "create table t (a int, b int, v text, behind int); select setseed(0.5);
         insert into t select random() * 1e6, random() * 1e6, 'v' || (random() * 1e6)::int, random() * 1e6 from generate_series(1, 200000);
         create index t_i on t using ironbloom (a, b, v, behind) with (selectivity = 5); vacuum analyze t;",
    );
    let explain = |condition: &str| {
        server.sql(&format!(
            "set enable_seqscan = off; explain (analyze, costs off, timing off) select * from t where {condition};"
        ))
    };
    for condition in ["a = 5", "b = 5", "a in (1, 2, 3) and b = 7"] {
        let plan = explain(condition);
        assert!(plan.contains("Bitmap Index Scan on t_i"), "{plan}");
        assert!(!plan.contains("Rows Removed") && !plan.contains("lossy"), "{condition}: {plan}");
    }
    // The text is compared only in rows whose integer is wanted.
    let plan = explain("a in (1, 2, 3) and v = 'v7'");
    assert!(plan.contains("Bitmap Index Scan on t_i") && !plan.contains("lossy"), "{plan}");
    // Behind a value of varying length nothing has a place that is known: the server rechecks whole pages.
    for condition in ["v = 'v7'", "behind = 5"] {
        let plan = explain(condition);
        assert!(plan.contains("Rows Removed by Index Recheck") && plan.contains("lossy"), "{plan}");
    }
    // If most rows are wanted, whole pages are as good.
    server.sql("update t set b = 1; vacuum full t;");
    let plan = explain("b = 1");
    assert!(plan.contains("lossy"), "{plan}");
}
