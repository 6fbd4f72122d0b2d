//! Harm stays local: a damaged or missing page is an error for those who need it, which names the index, the page and the cure;
//! everybody else goes on. With checksums of the server, and without.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::common::Server;

const PAGE: u64 = 8192;

/// As in the second header of a page: its kind, and the column of postings.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Meta,
    Postings(u16),
    Directory,
    Pending,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    Flip,
    Header,
    Zero,
    /// The file ends before the page.
    Cut,
}

struct Case {
    table: String,
    part: Part,
    damage: Damage,
    file: PathBuf,
    page: u64,
}

const PARTS: [Part; 5] =
    [Part::Meta, Part::Postings(0), Part::Postings(1), Part::Directory, Part::Pending];
const DAMAGES: [Damage; 4] = [Damage::Flip, Damage::Header, Damage::Zero, Damage::Cut];

fn make(server: &Server, table: &str) {
    server.sql(&format!(
        "create table {table} (a int, b int, c int) with (fillfactor = 50);
         insert into {table} select i % 3000, i % 2900, i from generate_series(1, 9000) i;
         create index {table}_i on {table} using ironbloom (a, b); create index {table}_c on {table} (c);
         update {table} set a = a + 1 where c < 40; analyze {table};"
    ));
}

/// The first page of that kind.
fn find(file: &File, part: Part) -> u64 {
    let pages = file.metadata().unwrap().len() / PAGE;
    let is_one = |page: &u64| {
        let mut head = [0; 4];
        file.read_exact_at(&mut head, page * PAGE + 32).unwrap();
        let number = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
        match part {
            Part::Meta => number(0) == 1,
            Part::Postings(column) => number(0) == 2 && number(2) == column,
            Part::Directory => number(0) == 3,
            Part::Pending => number(0) == 4,
        }
    };
    (0..pages).find(is_one).unwrap_or_else(|| panic!("no page of {part:?}"))
}

fn damage(file: &File, page: u64, damage: Damage) {
    let at = page * PAGE;
    match damage {
        Damage::Flip => {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at + 60).unwrap();
            file.write_all_at(&[byte[0] ^ 4], at + 60).unwrap();
        }
        Damage::Header => file.write_all_at(&[0xa5; 24], at).unwrap(),
        Damage::Zero => file.write_all_at(&[0; PAGE as usize], at).unwrap(),
        Damage::Cut => file.set_len(at).unwrap(),
    }
}

impl Case {
    fn name(&self, checksums: bool) -> String {
        format!("{:?} of {:?}, checksums {checksums}", self.damage, self.part)
    }

    /// An error must say where and what to do.
    fn is_explained(&self, error: &str) -> bool {
        let index = format!("index \"{}_i\"", self.table);
        error.contains(&index) && error.contains("page ") && error.contains("REINDEX")
    }

    /// Whether a query on this column does without the page.
    fn is_harmless_for(&self, column: u16) -> bool {
        self.damage != Damage::Cut && self.part == Part::Postings(1 - column)
    }

    fn holds(&self, server: &Server, checksums: bool) {
        let (table, name) = (&self.table, self.name(checksums));
        let count = |settings: &str, condition: &str| {
            server.try_sql(&format!("{settings} select count(*) from {table} where {condition};"))
        };
        // With another index, and without any wish for ours.
        assert_eq!(count("set enable_seqscan = off;", "c = 77").as_deref(), Ok("1"), "{name}");
        for (column, condition) in [(0, "a = 7"), (1, "b = 7")] {
            let by_table = count("set enable_bitmapscan = off;", condition).unwrap();
            // The planner knows of the first page: queries do without the index.
            let settings = if self.part == Part::Meta { "" } else { "set enable_seqscan = off;" };
            match count(settings, condition) {
                Ok(by_index) => assert_eq!(by_index, by_table, "{name}: {condition}"),
                Err(error) => {
                    let allowed = self.part != Part::Meta && !self.is_harmless_for(column);
                    assert!(allowed && self.is_explained(&error), "{name}: {condition}: {error}");
                }
            }
        }
        let error = server.try_sql(&format!("select ironbloom_check('{table}_i');")).unwrap_err();
        assert!(self.is_explained(&error), "{name}: {error}");
        server.sql(&format!("vacuum {table};"));
        // New pages of the table need no more than the first page of the index.
        let insert =
            "insert into T select i, i, -1 from generate_series(1, 20000) i;".replace('T', table);
        match server.try_sql(&insert) {
            Ok(_) => {}
            Err(error) => {
                let allowed = self.part == Part::Meta || self.part == Part::Pending;
                assert!(allowed && self.is_explained(&error), "{name}: {error}");
            }
        }
        server.sql(&format!(
            "vacuum {table}; reindex index {table}_i; {insert} select ironbloom_check('{table}_i');"
        ));
        server.compare(table, &["a = 7", "b = 7", "a = 8 and b = 9"]);
    }
}

fn harm_stays_local(checksums: bool) {
    let server = Server::start_with(if checksums { "harm-checksums" } else { "harm" }, checksums);
    let mut cases = Vec::new();
    for part in PARTS {
        for damage in DAMAGES {
            let table = format!("t{}", cases.len());
            make(&server, &table);
            let file = server.sql(&format!("select pg_relation_filepath('{table}_i');"));
            let file = server.folder.join("data").join(file);
            cases.push(Case { table, part, damage, file, page: 0 });
        }
    }
    server.stop();
    for case in &mut cases {
        let file = OpenOptions::new().read(true).write(true).open(&case.file).unwrap();
        case.page = find(&file, case.part);
        damage(&file, case.page, case.damage);
    }
    server.resume();
    for case in &cases {
        case.holds(&server, checksums);
    }
    assert!(!server.log().contains("terminated by signal"), "{}", server.log());
}

#[test]
fn harm_stays_local_without_checksums_of_the_server() {
    harm_stays_local(false);
}

#[test]
fn harm_stays_local_with_checksums_of_the_server() {
    harm_stays_local(true);
}
