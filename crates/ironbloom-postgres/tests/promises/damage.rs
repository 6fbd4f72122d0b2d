//! Damaged pages: an error that names the page, or the right answer; never a missing row, never the end of the server.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use ironbloom_testing::Random;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::common::Server;

const PAGE: u64 = 8192;

fn index_file(server: &Server) -> std::path::PathBuf {
    let path = server.sql("checkpoint; select pg_relation_filepath('t_i');");
    server.folder.join("data").join(path)
}

fn table(server: &Server) {
    server.sql(
        "create table t (a int, b int, pad text) with (fillfactor = 50);
         insert into t select random() * 3000, random() * 3000, repeat('x', 60) from generate_series(1, 40000);
         create index t_i on t using ironbloom (a, b);
         insert into t select random() * 3000, random() * 3000, 'y' from generate_series(1, 50);
         delete from t where ctid in (select ctid from t where pad = 'y' limit 10);
         analyze t;",
    );
}

#[test]
fn flipped_bytes_are_errors_with_a_hint_or_do_not_matter() {
    let server = Server::start("damage");
    table(&server);
    let conditions: Vec<String> = (0..20).map(|i| format!("a = {}", i * 150)).collect();
    let conditions: Vec<&str> = conditions.iter().map(String::as_str).collect();
    server.compare("t", &conditions);
    let file = index_file(&server);
    let pages = std::fs::metadata(&file).unwrap().len() / PAGE;
    let mut random = Random(3);
    let mut seen = 0;
    for round in 0..10 {
        server.stop();
        let bytes = OpenOptions::new().read(true).write(true).open(&file).unwrap();
        let mut before = Vec::new();
        // The first page, the last page, then some of all; never in the server's own header, which it checks itself.
        let hit: Vec<u64> = match round {
            0 => vec![0],
            1 => vec![pages - 1],
            _ => (0..1 + pages / 4).map(|_| random.below(pages)).collect(),
        };
        for &page in &hit {
            let at = page * PAGE + 24 + random.below(if round % 2 == 0 { 60 } else { PAGE - 24 });
            let mut byte = [0];
            bytes.read_exact_at(&mut byte, at).unwrap();
            before.push((at, byte));
            bytes.write_all_at(&[byte[0] ^ 1 << random.below(8)], at).unwrap();
        }
        server.resume();
        for &condition in &conditions {
            let by_table = server.sql(&format!(
                "set enable_bitmapscan = off; select count(*) from t where {condition};"
            ));
            let by_index = server.try_sql(&format!(
                "set enable_seqscan = off; select count(*) from t where {condition};"
            ));
            match by_index {
                Ok(count) => assert_eq!(count, by_table, "{condition}"),
                Err(error) => {
                    seen += 1;
                    assert!(
                        error.contains("damaged")
                            && error.contains("REINDEX")
                            && error.contains("page "),
                        "{error}"
                    );
                    break;
                }
            }
        }
        if round == 0 {
            // Nothing can be inserted without knowing what is sealed; and the cure is the one of the hint.
            assert!(
                server.try_sql("insert into t values (1, 2);").unwrap_err().contains("REINDEX")
            );
        }
        let check = server.try_sql("select ironbloom_check('t_i');");
        // In other rounds a byte may be in what a page does not use.
        assert!(
            round % 2 == 1 || check.as_ref().is_err_and(|error| error.contains("damaged")),
            "round {round}: {check:?}"
        );
        assert!(server.is_running());
        server.stop();
        for (at, byte) in before.into_iter().rev() {
            bytes.write_all_at(&byte, at).unwrap();
        }
        server.resume();
        server.sql("select ironbloom_check('t_i');");
    }
    assert!(seen >= 5, "{seen} errors");
    assert!(!server.log().contains("terminated by signal"), "{}", server.log());
}

/// Changes what the first page says, as if it had been written so. Gets it, and returns how many bytes of it there are then.
fn change_meta(server: &Server, change: impl FnOnce(&mut [u8]) -> usize) {
    let file = index_file(server);
    server.stop();
    let bytes = OpenOptions::new().read(true).write(true).open(&file).unwrap();
    let mut page = vec![0; PAGE as usize];
    bytes.read_exact_at(&mut page, 0).unwrap();
    let used = u32::from_ne_bytes(page[40..44].try_into().unwrap()) as usize;
    let used = change(&mut page[48..48 + used]);
    page[40..44].copy_from_slice(&(used as u32).to_ne_bytes());
    let checksum = xxh3_64_with_seed(&page[32..48 + used], 0);
    page[24..32].copy_from_slice(&checksum.to_ne_bytes());
    bytes.write_all_at(&page, 0).unwrap();
    server.resume();
}

/// Makes an index as earlier versions did: they had these rules to hash values, and noted nothing about row types.
pub(crate) fn make_older(server: &Server, rules: u8) {
    change_meta(server, |meta| {
        let columns = usize::from(meta[8]);
        meta[28] = rules;
        meta.len() - 8 * columns
    });
}

#[test]
fn an_index_with_hashes_of_an_older_version_is_refused_where_they_differ() {
    let server = Server::start("hashes");
    table(&server);
    // The first rules are the same for integers.
    make_older(&server, 0);
    server.sql("select ironbloom_check('t_i', deep => true);");
    server.compare("t", &["a = 5", "a = 5 and b = 7"]);
    if !server.make_collation("ci", "und-u-ks-level2", false) {
        return;
    }
    server.sql(
        "drop table t; create table t (a int, c char(9) collate ci); insert into t select i, 'c' || i % 99 from generate_series(1, 9000) i;
         create index t_i on t using ironbloom (a, c); analyze t;",
    );
    make_older(&server, 0);
    let plan = server.sql("explain select count(*) from t where c = 'C7';");
    assert!(plan.contains("Seq Scan"), "{plan}");
    assert_eq!(server.sql("select count(*) from t where c = 'C7';"), "91");
    let refused = server.try_sql("select ironbloom_check('t_i');").unwrap_err();
    assert!(refused.contains("older version") && refused.contains("REINDEX"), "{refused}");
    server.sql("reindex index t_i; select ironbloom_check('t_i', deep => true);");
    server.compare("t", &["c = 'C7'", "a = 7 and c = 'c7'"]);
}

#[test]
fn an_index_of_an_unknown_version_is_refused_with_a_hint() {
    let server = Server::start("version");
    table(&server);
    change_meta(&server, |meta| {
        meta[4] = 99;
        meta.len()
    });
    for refused in ["select * from ironbloom_info('t_i');", "insert into t values (1, 2);"] {
        let error = server.try_sql(refused).unwrap_err();
        assert!(error.contains("version 99") && error.contains("REINDEX"), "{error}");
    }
    // Queries do without the index.
    let plan = server.sql("explain select count(*) from t where a = 1;");
    assert!(plan.contains("Seq Scan"), "{plan}");
    server.sql("select count(*) from t where a = 1;");
    server.sql("reindex index t_i; select ironbloom_check('t_i');");
    let plan = server.sql("explain select count(*) from t where a = 1;");
    assert!(plan.contains("Bitmap Index Scan on t_i"), "{plan}");
}
