//! What `ironbloom_check` finds, and whom it disturbs.

use crate::common::Server;

#[test]
fn a_deep_check_finds_operators_that_the_hash_does_not_follow() {
    let server = Server::start("checks-deep");
    server.sql(
        "create function same(text, text) returns boolean language plpgsql immutable as 'begin return lower($1) = lower($2); end';
         create operator === (leftarg = text, rightarg = text, function = same, commutator = ===, restrict = eqsel);
         create operator class careless for type text using ironbloom as
             operator 1 ===, function 1 hashtextextended(text, int8);
         create operator family across using ironbloom;
         create operator class across for type int using ironbloom family across as
             operator 1 = (int, int), operator 1 = (int, int8), function 1 hashint4extended(int, int8),
             function 1 (int8, int8) hashfloat8extended(float8, int8);
         create table t (a text, b int);
         insert into t select case when i <= 10000 then 'abc' else 'ABC' end || i % 50, i % 50 from generate_series(1, 20000) i;
         create index right_i on t using ironbloom (a, b);
         create index careless_i on t using ironbloom (b, a careless);
         create index across_i on t using ironbloom (b across);",
    );
    server.sql("select ironbloom_check('right_i', deep => true);");
    for (index, shown) in [("careless_i", "==="), ("across_i", "::bigint")] {
        // Pages and cells are as they should be: only a question shows it.
        server.sql(&format!(
            "select ironbloom_check('{index}'), ironbloom_check('{index}', deep => false);"
        ));
        let found = server
            .try_sql(&format!("select ironbloom_check('{index}', deep => true);"))
            .unwrap_err();
        assert!(
            found.contains(index) && found.contains(shown) && found.contains("REINDEX"),
            "{found}"
        );
    }
}

#[test]
fn a_deep_check_passes_sound_indexes_of_all_shapes() {
    let server = Server::start("checks-sound");
    server.sql(
        "create type mood as enum ('sad', 'ok'); create schema \"Odd name\"; create role owner; grant all on schema \"Odd name\" to owner;
         set role owner; set search_path = \"Odd name\";
         create table \"T\" (id int, \"Big\" bigint, n numeric, f float8, tx text, v varchar(9), c char(9), na name, ts timestamptz,
             iv interval, u uuid, by bytea, ar int[], r int4range, j jsonb, e public.mood, bo bool, ch \"char\", nothing int);
         insert into \"T\" select i % 300, i % 200 + 40000, (i % 99)::numeric / 7, i / 3.0, 't''' || i % 77, 'v' || i % 9, 'c' || i % 9, 'n' || i % 99,
             timestamptz '2020-01-01 00:00+00' + make_interval(mins => i % 70), make_interval(days => i % 50), md5((i % 60)::text)::uuid,
             decode(md5(i::text), 'hex'), array[i % 20, i % 30], int4range(i % 20, i % 20 + 3), jsonb_build_object('k', i % 44),
             case i % 2 when 0 then 'sad' else 'ok' end::public.mood, i % 2 = 0, chr(33 + i % 90)::\"char\", null
             from generate_series(1, 2000) i;
         create index all_i on \"T\" using ironbloom (id, \"Big\", n, f, tx, v, c, na, ts, iv, u, by, ar, r, j, e, bo, ch, nothing);
         create index tree on \"T\" (id);
         create function twice(i int) returns int language plpgsql immutable as 'begin return 2 * i; end';
         create index part_i on \"T\" using ironbloom (lower(tx), twice(id), (\"Big\" + 1)) where id > 5;
         create table empty (a int); create index empty_i on empty using ironbloom (a);
         insert into \"T\" select * from \"T\" limit 300;",
    );
    for index in ["all_i", "part_i", "empty_i"] {
        for setting in [
            "",
            "set datestyle = 'SQL, DMY'; set intervalstyle = 'iso_8601'; set extra_float_digits = -3;",
        ] {
            server.sql(&format!(
                "{setting} select ironbloom_check('\"Odd name\".{index}', deep => true);"
            ));
        }
    }
    // Settings and rights are as before.
    assert_eq!(
        server.sql("select ironbloom_check('\"Odd name\".all_i', deep => true) > 0; select current_user, current_setting('enable_seqscan'), current_setting('search_path');"),
        "t\npostgres|on|\"$user\", public"
    );
}

#[test]
fn a_check_blocks_no_writer_and_no_concurrent_build() {
    let server = Server::start("checks-beside");
    server.sql(
        "create table t (a int, b int);
         create function slowly(a int) returns int language plpgsql immutable as $$ begin
             if a = -1 then perform pg_sleep(2); end if; return a; end $$;
         insert into t select generate_series(1, 20000); create index t_i on t using ironbloom (slowly(a));
         update t set a = -1 where a = 7;",
    );
    server.sql("create or replace function slowly(a int) returns int language plpgsql immutable as $$ begin
        if a = 9 then perform pg_sleep(2); end if; return a; end $$;");
    let check = server.session("select ironbloom_check('t_i');");
    let sleeps = "select count(*) from pg_stat_activity where wait_event = 'PgSleep';";
    ironbloom_testing::wait_until(|| server.sql(sleeps) == "1");
    let build = server.session("create index concurrently t_j on t using ironbloom (b);");
    server.sql("set lock_timeout = '1s'; insert into t values (5), (6); update t set b = 1 where a = 500; delete from t where a = 600;");
    assert_eq!(server.sql(sleeps), "1", "the check was still at work");
    for session in [check, build] {
        let done = session.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn a_check_misses_no_cell() {
    let server = Server::start("checks-cells");
    server.sql(
        "create table t (a int, b int); insert into t select i, i from generate_series(1, 20000) i;
         create index t_i on t using ironbloom (a, b);",
    );
    // The table changes behind the index's back: rows of another table's file.
    server.sql("create table o (a int, b int); insert into o select i, i + 1 from generate_series(1, 20000) i; checkpoint;");
    let path = |table: &str| {
        let path = server.sql(&format!("select pg_relation_filepath('{table}');"));
        server.folder.join("data").join(path)
    };
    let (to, from) = (path("t"), path("o"));
    server.sql("vacuum (freeze) o; vacuum (freeze) t; checkpoint;");
    server.stop();
    std::fs::write(&to, std::fs::read(&from).unwrap()).unwrap();
    server.resume();
    let missing = server.try_sql("select ironbloom_check('t_i');").unwrap_err();
    assert!(
        missing.contains("does not name heap page") && missing.contains("column 2"),
        "{missing}"
    );
    let found = server.try_sql("set enable_seqscan = off; select count(*) from t where b = 5;");
    assert!(found.is_ok());
}

/// Rules about who sees which row, and which values may come, say nothing about the index.
#[test]
fn a_deep_check_is_not_disturbed_by_policies_and_constraints() {
    let server = Server::start("checks-policies");
    server.sql(
        "create role alice; create domain small as int; create domain word as text; create type pair as (s small, w word);
         create function fails(a int) returns boolean language plpgsql as $$ begin raise 'policy of row %', a; end $$;
         create table t (a int, s small, sl small[], w word); alter table t owner to alice;
         insert into t select i, i % 500, array[i % 500], 'w' || i % 500 from generate_series(1, 5000) i;
         create index t_i on t using ironbloom (a, s, sl, w);
         alter table t enable row level security; alter table t force row level security;
         create policy p on t using (fails(a));
         alter domain small add check (value < 0) not valid; alter domain word add check (false) not valid;
         -- Wrong where the policy hides it.
         create function same(int, int) returns boolean language plpgsql immutable as 'begin return $1 % 2 = $2 % 2; end';
         create operator === (leftarg = int, rightarg = int, function = same, commutator = ===, restrict = eqsel);
         create operator class careless for type int using ironbloom as operator 1 ===, function 1 hashint4extended(int, int8);
         create table hidden (a int); alter table hidden owner to alice; insert into hidden select generate_series(1, 5000);
         create index hidden_i on hidden using ironbloom (a careless);
         alter table hidden enable row level security; alter table hidden force row level security;
         create policy p on hidden using (false);",
    );
    assert!(
        server
            .try_sql("set role alice; select count(*) from t;")
            .unwrap_err()
            .contains("policy of row")
    );
    server.sql("select ironbloom_check('t_i', deep => true);");
    assert_eq!(
        server.sql("select problem is null from ironbloom_verify('t_i', deep => true);"),
        "t"
    );
    let found = server.try_sql("select ironbloom_check('hidden_i', deep => true);").unwrap_err();
    assert!(found.contains("===") && found.contains("REINDEX"), "{found}");
    // They apply again afterwards.
    assert_eq!(
        server.sql("select ironbloom_check('t_i', deep => true) > 0; set role alice; select count(*) from hidden;"),
        "t\n0"
    );
    if server.sql("show server_version_num;").parse::<u32>().unwrap() >= 140_000 {
        server.sql(
            "create table r (p pair, half pair); alter domain small drop constraint small_check; alter domain word drop constraint word_check;
             insert into r select row(i % 500, 'w' || i % 500)::pair, row(i % 500, null)::pair from generate_series(1, 5000) i;
             create index r_i on r using ironbloom (p, half); alter domain small add check (value < 0) not valid;
             select ironbloom_check('r_i', deep => true);",
        );
    }
}
