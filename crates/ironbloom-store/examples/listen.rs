//! A table of names that others write to as well, with psql or from another service. A guard in front of it hears of
//! their rows by `LISTEN` and `NOTIFY`: the follower creates triggers on the table, notes what they tell, and builds the
//! filter again after the connection was lost.
//!
//! Starts a PostgreSQL server of its own, and says so if there is none.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use ironbloom_store::{AsyncGuard, AsyncPostgres, Follower, GuardKind, Options};
use ironbloom_testing::Scratch;
use ironbloom_testing::postgres::PostgresServer;

fn main() -> Result<(), Box<dyn Error>> {
    let scratch = Scratch::on_disk("listen");
    if let Some(mut server) = PostgresServer::start(scratch.path()) {
        server.wait();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on(show(&mut server))?;
    }
    Ok(())
}

async fn show(server: &mut PostgresServer) -> Result<(), Box<dyn Error>> {
    let store = AsyncPostgres::connect(&server.url(), "names").await?;
    let guard =
        Arc::new(AsyncGuard::open(store, Options::new(GuardKind::Blocked, 100_000, 0.001)).await?);

    // First subscribe, then scan: from here on no row is missed. The task does both.
    let follower = Follower::subscribe(guard.clone()).await?;
    let task = tokio::spawn(follower.run());

    guard.put("alice", b"ours").await?;
    server.psql("insert into names values ('bob', 'theirs'), ('carol', 'theirs')");
    found(&guard, "bob").await?;
    server.psql("update names set key = 'caroline' where key = 'carol'");
    found(&guard, "caroline").await?;
    server.psql("delete from names where key = 'bob'");
    assert!(!guard.contains("bob").await?);
    server.psql("truncate names");
    assert!(!guard.contains("alice").await?);
    server.psql("insert into names values ('dave', 'theirs')");
    found(&guard, "dave").await?;

    // While the server is away, nobody hears anything. Once it is back, the table is asked until the filter is built.
    server.stop();
    server.resume();
    server.wait();
    server.psql("insert into names values ('erin', 'theirs')");
    found(&guard, "erin").await?;

    // Most questions for what is not there never reach the server.
    let before = guard.stats().skipped();
    for round in 0..100 {
        if guard.stats().skipped() > before + 50 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10 * round)).await;
        for i in 0..100 {
            assert!(!guard.contains(format!("nobody-{i}")).await?);
        }
    }
    println!("{} questions were answered from memory", guard.stats().skipped());
    assert!(guard.stats().skipped() > before + 50);
    task.abort();
    Ok(())
}

/// The message about a row takes a moment; an error costs a connection that has ended with its server.
async fn found(guard: &AsyncGuard<AsyncPostgres>, name: &str) -> Result<(), Box<dyn Error>> {
    for _ in 0..1000 {
        match guard.contains(name).await {
            Ok(true) => {
                println!("{name} is there");
                return Ok(());
            }
            Ok(false) => {}
            Err(error) => println!("not yet: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(format!("{name} was never found").into())
}
