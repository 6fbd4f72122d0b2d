//! Filters in SQL: the bytes of .ibf files, both ways.

use ironbloom::{AnyFilter, Bloom, Persist};

use crate::common::Server;

#[test]
fn filters_go_from_sql_to_the_library_and_back() {
    let server = Server::start("filters");
    let hex = server.sql(
        "create table words as select 'w' || i as w from generate_series(1, 5000) i;
         select encode(ironbloom_build(w, 5000, 0.01), 'hex') from words;",
    );
    let bytes: Vec<u8> = (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let filter = AnyFilter::from_bytes(&bytes).unwrap();
    assert!((1..=5000).all(|i| filter.contains(format!("w{i}").as_bytes()).unwrap()));
    let wrong = (0..5000).filter(|i| filter.contains(format!("x{i}").as_bytes()).unwrap()).count();
    // 1 % of 5000, 6 sigma.
    assert!(wrong < 50 + 6 * 8, "{wrong}");

    let mut bloom = Bloom::with_rate(100, 0.01).unwrap();
    bloom.insert(b"alice".as_slice());
    let hex: String = bloom.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let asked = format!(
        "select ironbloom_contains(decode('{hex}', 'hex'), 'alice'), ironbloom_contains(decode('{hex}', 'hex'), 'bob');"
    );
    assert_eq!(server.sql(&asked), "t|f");
    let counted = server.sql(
        "with f as (select ironbloom_build(w, 5000, 0.01) as f from words)
         select count(*) filter (where ironbloom_contains(f.f, w)) from words, f;",
    );
    assert_eq!(counted, "5000");
    assert_eq!(
        server.sql("select ironbloom_build(w, 10, 0.1) is null from words where false;"),
        "t"
    );
    assert!(
        server
            .try_sql("select ironbloom_contains('\\x1234', 'x');")
            .unwrap_err()
            .contains("not a filter")
    );
    assert!(
        server
            .try_sql("select ironbloom_build(w, 10, 2) from words;")
            .unwrap_err()
            .contains("rate")
    );
}
