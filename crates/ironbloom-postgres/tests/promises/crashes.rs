//! The server is killed in the middle of inserts, seals, merges and builds: nothing that was committed is lost.

use ironbloom_testing::Random;

use crate::common::Server;

/// How often: `IRONBLOOM_CRASHES`, or as often as fits into the time of all tests.
fn crashes() -> usize {
    std::env::var("IRONBLOOM_CRASHES").map_or(10, |text| text.parse().unwrap())
}

#[test]
fn no_committed_row_is_lost_by_a_crash() {
    let server = Server::start("crashes");
    server.sql(
        "create table t (id bigserial, a int, b int, c text) with (fillfactor = 70);
         create index t_i on t using ironbloom (a, b, c) with (selectivity = 6);
         create unlogged table u (a int); create index u_i on u using ironbloom (a);
         create function put(n int) returns setof bigint language sql as $$
             insert into t (a, b, c) select random() * 500, random() * 500, 'c' || (random() * 50)::int from generate_series(1, n) returning id $$;",
    );
    let few = "select 'id ' || put(1);\n".repeat(5_000);
    let many = "select 'id ' || put(4000);\n".repeat(100);
    let change = "update t set b = b + 1 where a = (random() * 500)::int; insert into u select generate_series(1, 500);\n".repeat(3_000);
    let tidy = "select ironbloom_seal('t_i'); vacuum t;\n".repeat(1_000);
    let build = "create index t_j on t using ironbloom (b, c); drop index t_j;\n".repeat(500);
    let mut random = Random(7);
    for crash in 0..crashes() {
        let sessions: Vec<_> =
            [&few, &many, &change, &tidy, &build].map(|script| server.session(script)).into();
        std::thread::sleep(std::time::Duration::from_millis(100 + random.below(600)));
        server.kill();
        let mut committed: Vec<u64> = Vec::new();
        for session in sessions {
            let printed = session.wait_with_output().unwrap().stdout;
            let printed = String::from_utf8_lossy(&printed).into_owned();
            committed.extend(
                printed.lines().filter_map(|line| line.strip_prefix("id ")?.parse::<u64>().ok()),
            );
        }
        server.resume();
        server.sql("drop index if exists t_j; select ironbloom_check('t_i'); select ironbloom_check('u_i');");
        if !committed.is_empty() {
            let ids: Vec<String> = committed.iter().map(u64::to_string).collect();
            let found =
                server.sql(&format!("select count(*) from t where id in ({});", ids.join(",")));
            assert_eq!(found, committed.len().to_string(), "crash {crash}");
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
    }
}
