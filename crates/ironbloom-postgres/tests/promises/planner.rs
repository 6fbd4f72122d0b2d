//! The planner takes the index where it is faster, and only there.

use crate::common::Server;

fn plan(server: &Server, query: &str) -> String {
    server.sql(&format!("explain (costs off) {query}"))
}

#[test]
fn the_planner_takes_the_index_unaided_and_only_where_it_helps() {
    let server = Server::start("planner");
    server.sql(
        "create table wide as select (random() * 1e6)::int a, (random() * 1e6)::int b, (random() * 1e6)::int c, (random() * 3)::int few
             from generate_series(1, 400000);
         create index wide_i on wide using ironbloom (a, b, c, few);
         create table tiny as select i as a from generate_series(1, 50) i;
         create index tiny_i on tiny using ironbloom (a);
         create table narrow as select i::smallint as a from generate_series(1, 20000) i;
         create index narrow_i on narrow using ironbloom (a);
         analyze;",
    );
    for condition in [
        "a = 5",
        "b = 5",
        "c = 5 and a = 7",
        "a in (1, 2, 3)",
        "few = 1 and b = 3",
        "a = 5 or b = 7",
    ] {
        let plan = plan(&server, &format!("select * from wide where {condition}"));
        assert!(plan.contains("Bitmap Index Scan on wide_i"), "{condition}: {plan}");
    }
    for (table, condition) in
        [("wide", "few = 1"), ("tiny", "a = 5"), ("wide", "a > 5"), ("wide", "few is not null")]
    {
        let plan = plan(&server, &format!("select * from {table} where {condition}"));
        assert!(plan.contains("Seq Scan"), "{condition}: {plan}");
    }
    // A table of one small column has so many rows on a page that its few pages are soon read.
    let narrow = plan(&server, "select * from narrow where a = 77");
    assert!(narrow.contains("Bitmap Index Scan on narrow_i"), "{narrow}");
    // The inner side of a join, asked with the outer side's values.
    let join = plan(&server, "select * from tiny join wide on wide.b = tiny.a");
    assert!(join.contains("Nested Loop") && join.contains("Bitmap Index Scan on wide_i"), "{join}");
    // Beside a B-tree, which is faster for one column.
    server.sql("create index wide_b on wide (a); analyze wide;");
    let both = plan(&server, "select * from wide where a = 5");
    assert!(both.contains("wide_b") && !both.contains("wide_i"), "{both}");
    let shown = server
        .sql("explain (analyze, buffers, timing off) select * from wide where b = 5 and c = 6;");
    assert!(
        shown.contains("Index Cond: ((b = 5) AND (c = 6))") && shown.contains("Buffers"),
        "{shown}"
    );
}
