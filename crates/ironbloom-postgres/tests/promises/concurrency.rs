//! Writers, maintenance and readers at once: each reader gets the same answer by index and by table in one snapshot.

use crate::common::Server;

const SECONDS: u64 = 6;

/// A script that goes on for some seconds: each round is a transaction of its own.
fn rounds(server: &Server, body: &str) -> ironbloom_testing::Running {
    let script = format!("select pg_sleep(0.05);\n{}", format!("{body}\n").repeat(4_000));
    server.session(&format!("set statement_timeout = '60s';\n{script}"))
}

#[test]
fn readers_see_the_same_by_index_while_everything_changes() {
    let server = Server::start("concurrency");
    server.sql(
        "create table t (id bigserial, a int, b int, c text) with (fillfactor = 60);
         create index t_i on t using ironbloom (a, b, c) with (selectivity = 6);
         insert into t (a, b, c) select random() * 500, random() * 500, 'c' || (random() * 50)::int from generate_series(1, 30000);
         create function busy() returns void language plpgsql as $$ begin
             insert into t (a, b, c) select random() * 500, random() * 500, 'c' || (random() * 50)::int
                 from generate_series(1, 1 + (random() * 800)::int);
         end $$;",
    );
    let insert = "select busy();";
    // One session only: two of them would lock each other's rows.
    let change =
        "update t set a = (random() * 500)::int where a = (random() * 500)::int and id % 7 < 3;
        delete from t where b = (random() * 500)::int;";
    let tidy = "vacuum t; select ironbloom_seal('t_i'); select pg_sleep(0.02);";
    let build = "create index concurrently t_j on t using ironbloom (b, a); select pg_sleep(0.1); reindex index concurrently t_j; drop index concurrently t_j;";
    let read = "begin isolation level repeatable read;
        select 'compared ' || compare('t', array['a = ' || (random() * 500)::int, 'a = ' || (random() * 500)::int || ' and b = ' || (random() * 500)::int,
            'c = ''c3'' and a in (1, 2, 3, 4)', 'b = ' || (random() * 500)::int]);
        commit;";
    let check = "select ironbloom_check('t_i'); select pg_sleep(0.01);";
    let roles = [insert, insert, change, tidy, build, check, read, read];
    let mut sessions: Vec<_> = roles.iter().map(|role| (role, rounds(&server, role))).collect();
    std::thread::sleep(std::time::Duration::from_secs(SECONDS));
    // Whoever has failed has ended already; the others are still at it.
    let failed: Vec<&&str> = sessions
        .iter_mut()
        .filter_map(|(role, session)| session.try_wait().unwrap().map(|_| *role))
        .collect();
    server.sql("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend';");
    let mut compared = 0;
    let mut errors = Vec::new();
    for (role, session) in sessions {
        let done = session.wait_with_output().unwrap();
        let lines = String::from_utf8_lossy(&done.stdout).into_owned();
        compared += lines.lines().filter(|line| line.starts_with("compared ")).count();
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        if failed.contains(&role) || error.contains("by index") {
            errors.push(format!("{role}: {error}"));
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    assert!(compared > 5, "{compared} comparisons");
    server.sql("drop index if exists t_j; select ironbloom_check('t_i'); vacuum t; select ironbloom_check('t_i');");
    server.compare("t", &["a = 7", "b = 7 and a = 7", "c = 'c7' and b = 3"]);
}
