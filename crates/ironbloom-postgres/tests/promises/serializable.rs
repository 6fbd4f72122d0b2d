//! Serializable transactions: what one reads by the index and another writes is noticed.

use crate::common::Server;

#[test]
fn serializable_transactions_do_not_overlook_a_row_that_is_being_noted() {
    let server = Server::start("serializable");
    // A hash function that takes its time where it is told to: between the server's own check and our note of the row.
    server.sql(
        "create function slow_hash(int, int8) returns int8 language plpgsql immutable as $$ begin
             if current_setting('test.slow', true) = 'on' then
                 begin perform pg_sleep(300); exception when query_canceled then null; end;
             end if;
             return hashint4extended($1, $2); end $$;
         create operator class slow for type int using ironbloom as operator 1 =, function 1 slow_hash(int, int8);
         create table once (a int, pad text); insert into once select -i, 'x' from generate_series(1, 20000) i;
         create index once_i on once using ironbloom (a slow); delete from once where a % 2 = 0; vacuum once;",
    );
    let look = "begin isolation level serializable; set local enable_seqscan = off; select count(*) from once where a = 5;";
    let first = server
        .session(&format!("{look} set local test.slow = on; insert into once values (5); commit;"));
    let sleeps = "select count(*) from pg_stat_activity where wait_event = 'PgSleep';";
    ironbloom_testing::wait_until(|| server.sql(sleeps) == "1");
    let second = server.try_sql(&format!("{look} insert into once values (5); commit;"));
    // The first goes on: its hash function returns when it is interrupted, which must not end the statement.
    server.sql("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'PgSleep';");
    let first = first.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&first.stderr).into_owned();
    assert!(second.is_err() || error.contains("could not serialize"), "{second:?} {error}");
    assert_eq!(server.sql("select count(*) from once where a = 5;"), "1");
}
