//! Several sessions at once, at all three levels of isolation, beside builds and rebuilds that do not lock the table.

use std::process::Output;
use std::time::Duration;

use ironbloom_testing::Running;

use super::{EXPECTED, Printed, bounds, history, read};
use crate::common::Server;

/// Without a given time.
const SECONDS: u64 = 6;

const TABLE: &str =
    "create table t (id bigserial, a int, b int, c text, note int default 0) with (fillfactor = 60);
    create index t_i on t using ironbloom (a, b, c) with (selectivity = 6);
    create function put(n int) returns void language sql as $$
        insert into t (a, b, c) select random() * 500, random() * 500, 'c' || (random() * 50)::int from generate_series(1, n) $$;
    select put(30000);
    create table once (a int, pad text); create index once_i on once using ironbloom (a);
    insert into once select -i, repeat('x', 200) from generate_series(1, 20000) i; vacuum analyze once;
    create function question() returns text language sql as $$
        select 't x where ' || (array['a = ' || (random() * 500)::int, 'a = ' || (random() * 500)::int || ' and b = ' || (random() * 500)::int,
            'c = ''c3'' and a in (1, 2, 3, 4)', 'b = ' || (random() * 500)::int, 'a is null or b = ' || (random() * 500)::int])[1 + floor(random() * 5)] $$;
    create function ask() returns setof text language sql as $$
        select differences(array[question(), question(), question(), question()]) $$;";

/// Reads at a level of isolation, twice, with what the transaction itself has written in between.
fn reader(isolation: &str) -> String {
    format!(
        "begin isolation level {isolation}; select differences(array[question(), question()]);
         insert into t (a, b, c) values (7, 8, 'c3'); update t set a = 9 where id = currval('t_id_seq');
         select differences(array[question(), question(), 't x where a = 9', 't x where a = 7 and b = 8']);
         select 'asked'; commit;"
    )
}

fn roles() -> Vec<(&'static str, String)> {
    let of = |name: &'static str, body: &str| (name, body.to_owned());
    vec![
        of("insert", "select put(1 + (random() * 800)::int);"),
        of("insert and roll back", "begin; select put(2000); savepoint s; select put(500); rollback to s; rollback;"),
        of(
            "update and delete",
            "update t set a = (random() * 500)::int where a = (random() * 500)::int and id % 7 < 3;
             delete from t where b = (random() * 500)::int; update t set note = note + 1 where c = 'c' || (random() * 50)::int;",
        ),
        of("maintain", "vacuum t; select ironbloom_seal('t_i'); select pg_sleep(0.02);"),
        of("check", "select ironbloom_check('t_i'); select ironbloom_check('t_i', true); select pg_sleep(0.01);"),
        of(
            "build beside",
            "drop index concurrently if exists t_j; create index concurrently t_j on t using ironbloom (b, a);
             reindex index concurrently t_j; reindex index concurrently t_i; drop index concurrently t_j;",
        ),
        of(
            "prepare",
            "begin; select put(700); prepare transaction 'two'; select pg_sleep(0.01); commit prepared 'two';
             begin; select put(900); prepare transaction 'two'; rollback prepared 'two';",
        ),
        of(
            "be interrupted",
            "set statement_timeout = '15ms'; select put(5000); select ironbloom_seal('t_i'); vacuum t; reset statement_timeout;",
        ),
        ("read committed", reader("read committed")),
        ("read repeatably", reader("repeatable read")),
        ("read serializably", reader("serializable")),
        // Two sessions that insert a value which they did not find: one of them has to give way.
        of("once", ONCE),
        of("once more", ONCE),
    ]
}

/// The condition is answered by the index, on which the server notes what was read.
const ONCE: &str = "begin isolation level serializable; set local enable_seqscan = off;
    insert into once select v from (select floor(extract(epoch from clock_timestamp()) * 20)::bigint % 1000000000 as v) n
        where not exists (select from once o where o.a = n.v); commit;";

/// A script that goes on until its session is ended: each round is a transaction or more.
fn endless(server: &Server, body: &str) -> Running {
    // Rounds that fail are not the end: most are serialization failures.
    let start = "\\set ON_ERROR_STOP 0\n".to_owned();
    server.session_of(std::iter::once(start).chain(std::iter::repeat(format!("{body}\n"))))
}

#[test]
fn readers_of_every_isolation_see_the_same_by_index_while_everything_changes() {
    let (_, time) = bounds();
    let server = Server::start("beside");
    server.sql(&history::functions());
    server.sql(TABLE);
    let roles = roles();
    let mut sessions: Vec<_> =
        roles.iter().map(|(name, body)| (*name, endless(&server, body))).collect();
    std::thread::sleep(time.max(Duration::from_secs(SECONDS)));
    let early: Vec<&str> = sessions
        .iter_mut()
        .filter_map(|(name, session)| session.try_wait().unwrap().map(|_| *name))
        .collect();
    server.sql("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend';");
    let mut expected = EXPECTED.to_vec();
    expected.push("terminating connection due to administrator command");
    let mut asked = [0; 3];
    let mut wrong = Vec::new();
    for (name, session) in sessions {
        let done: Output = session.wait_with_output().unwrap();
        let printed: Printed = read(&done, &expected);
        wrong.extend(printed.wrong.into_iter().map(|line| format!("{name}: {line}")));
        let level = ["read committed", "read repeatably", "read serializably"];
        if let Some(level) = level.iter().position(|level| *level == name) {
            let lines = String::from_utf8_lossy(&done.stdout);
            asked[level] = lines.lines().filter(|line| *line == "asked").count();
        }
    }
    println!("{asked:?} transactions compared at three levels of isolation, {} wrong", wrong.len());
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(early.is_empty(), "ended before they were told to: {early:?}");
    assert!(asked.iter().all(|&asked| asked > 0), "{asked:?}");
    let twice = "select count(*), count(distinct a) from once where a > 0;";
    let counts = server.sql(twice);
    let (rows, values) = counts.split_once('|').unwrap();
    assert!(rows == values && rows != "0", "{rows} rows of {values} values");
    // What a terminated session has prepared still holds its locks.
    let _ = server.try_sql("rollback prepared 'two';");
    server.sql("drop index if exists t_j; select ironbloom_check(i) from leaves('t') i; vacuum t; select ironbloom_check('t_i');");
    server.compare("t", &["a = 7", "b = 7 and a = 7", "c = 'c7' and b = 3"]);
}
