//! The server is killed in the middle of inserts, seals, merges and builds: nothing that was committed is lost.

use ironbloom_testing::{Random, Running};

use crate::common::Server;

/// How often: `IRONBLOOM_CRASHES`, or as often as fits into the time of all tests.
fn crashes() -> usize {
    std::env::var("IRONBLOOM_CRASHES").map_or(10, |text| text.parse().unwrap())
}

const TABLES: &str = "create table t (id bigserial, a int, b int, c text) with (fillfactor = 70);
    create index t_i on t using ironbloom (id, a, b, c) with (selectivity = 6);
    create unlogged table u (a int); create index u_i on u using ironbloom (a);
    create function put(n int) returns setof bigint language sql as $$
        insert into t (a, b, c) select random() * 500, random() * 500, 'c' || (random() * 50)::int from generate_series(1, n) returning id $$;";

/// What sessions do, again and again. Only what is printed is known to be committed.
const WORK: [&str; 7] = [
    "select 'id ' || put(1);",
    "select 'id ' || put(4000);",
    "update t set b = b + 1 where a = (random() * 500)::int; insert into u select generate_series(1, 500);",
    "select ironbloom_seal('t_i'); vacuum t;",
    "create index t_j on t using ironbloom (b, c); drop index t_j;",
    "reindex index concurrently t_i;",
    "begin; select count(put(100)); savepoint s; select count(put(300)); rollback to s; prepare transaction 'p';
     commit prepared 'p';",
];

/// What a crash leaves behind in the catalogue, as it does with every index.
const TIDY: &str = "do $$ declare name regclass; begin
        drop index if exists t_j;
        for name in select indexrelid from pg_index where not indisvalid loop execute 'drop index ' || name; end loop;
    end $$;";

/// Numbers that a session has printed.
fn committed(session: Running) -> Vec<String> {
    let printed = session.wait_with_output().unwrap().stdout;
    let lines = String::from_utf8_lossy(&printed).into_owned();
    lines.lines().filter_map(|line| line.strip_prefix("id ")).map(str::to_owned).collect()
}

#[test]
fn no_committed_row_is_lost_by_a_crash() {
    let server = Server::start("crashes");
    server.sql(TABLES);
    let mut random = Random(7);
    let mut rows = 0;
    for crash in 0..crashes() {
        let work = |body: &str| server.session_of(std::iter::repeat(format!("{body}\n")));
        let sessions: Vec<Running> = WORK.into_iter().map(work).collect();
        std::thread::sleep(std::time::Duration::from_millis(100 + random.below(600)));
        if random.one_in(3) {
            // The server ends all other processes, too, and recovers by itself.
            server.kill_one();
        } else {
            server.kill();
        }
        let ids: Vec<String> = sessions.into_iter().flat_map(committed).collect();
        if !server.is_running() {
            server.resume();
        }
        ironbloom_testing::wait_until(|| server.try_sql("select 1;").is_ok());
        let end = ["commit", "rollback"][crash % 2];
        if server.sql("select count(*) from pg_prepared_xacts;") != "0" {
            server.sql(&format!("{end} prepared 'p';"));
        }
        server.sql(TIDY);
        server.sql("select ironbloom_check('t_i'); select ironbloom_check('u_i');");
        if !ids.is_empty() {
            rows += ids.len();
            // By the index, and by the table.
            let found = format!("select count(*) from t where id in ({});", ids.join(","));
            for way in ["seqscan", "bitmapscan"] {
                let found = server.sql(&format!("set enable_{way} = off; {found}"));
                assert_eq!(found, ids.len().to_string(), "crash {crash}");
            }
        }
        assert_eq!(
            server.compare(
                "t",
                &["a = 17", "a = 17 and b = 19", "c = 'c5' and b = 100", "a in (1, 2, 3)"]
            ),
            4
        );
        assert_eq!(server.compare("u", &["a = 17"]), 1);
        if crash % 4 == 3 {
            server.sql("truncate t; delete from u; select ironbloom_check('t_i');");
        }
        // After each crash: whoever stops it keeps what it has found.
        println!("{} crashes, {rows} committed rows found after them", crash + 1);
    }
}
