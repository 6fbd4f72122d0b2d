//! The report as Markdown: bars first, then every contender at every size, with the rows we lose.

use std::fmt::Write as _;

use crate::bars::Bar;
use crate::contender::Side;
use crate::keys::Share;
use crate::machine::Machine;
use crate::number::grouped;
use crate::plots::{self, Plot};
use crate::stats;
use crate::table::{Op, Row, Table};
use crate::threads::Scaling;

/// Everything that goes into the files.
pub(crate) struct Report<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) command: String,
    pub(crate) tables: &'a [Table],
    pub(crate) scalings: &'a [Scaling],
    pub(crate) bars: Vec<Bar>,
}

const HOW: &str = "\
The requested rate is 1 % for all filters. Times are nanoseconds per key, medians over rounds. In each round all contenders
take their turns at the same keys, and ratios are medians of the ratios within rounds.

- **Hashing** is included in the time. Integers are hashed with `mix64`, strings (28 to 31 bytes) with XXH3, in the same way
  for all that accept a precomputed hash: ours, fastbloom, sbbf-rs, qfilter, and for strings xorf and our fuse filters
  (which mix integers themselves). cuckoofilter, scalable_cuckoo_filter, bloomfilter, growable-bloom-filter, datasketches
  and \"fastbloom (its hasher)\" get the keys and use their default hashing.
- **Lookups** query keys in random order, of which all (hit), half, or none (miss) are present. **Batches** are hashed in
  groups of 1,024.
- **Static kinds** are built from an array of 64-bit hashes; the build time is in the insert column. Scalable and
  growable-bloom-filter start with a 31st of the keys and grow four times.
- **Sizes** are what each library chooses for the rate. In cuckoofilter, qfilter and scalable_cuckoo_filter the number of
  slots is a power of two, so their load and their bits per key differ from size to size. sbbf-rs leaves its size, and its
  memory, to the caller: one version has 10 bits per key, the other what 1 % requires, both on ordinary pages.
- **Rates** come from the absent keys of all rounds, different ones each time.
- **Every answer is checked.** A peer that misses 1 % (\"over\") still counts as a peer; one that loses keys does not.

**Bold** is ours; `×` is how many times as fast as the best peer at the same work (batches: against its single operations,
since no peer has batches), below 1 where we lose; `*` marks that peer. \"Excess\" is bits per key beyond log2(1/rate), the
least that any filter needs. \"Line reads\" is not a filter but the memory itself: one random line of 64 bytes per key, from
an array as large as BlockedBloom, hashing included; prefetched in the batch columns, one after the other in the others.
";

/// The operation columns.
const COLUMNS: [(&str, Op); 8] = [
    ("insert", Op::Insert),
    ("hit", Op::Lookup(Share::All)),
    ("half", Op::Lookup(Share::Half)),
    ("miss", Op::Lookup(Share::None)),
    ("batch insert", Op::BatchInsert),
    ("batch hit", Op::BatchLookup(Share::All)),
    ("batch half", Op::BatchLookup(Share::Half)),
    ("batch miss", Op::BatchLookup(Share::None)),
];

/// Renders the page.
pub(crate) fn markdown(report: &Report<'_>, plots: &[Plot]) -> String {
    let Machine { date, commit, hardware } = report.machine;
    let mut page = format!(
        "# Compared with other libraries\n\n{date}, commit {commit}; {hardware}.\n\n```\n{}\n```\n\n{HOW}",
        report.command
    );
    for plot in plots.iter().filter(|plot| plot.name == plots::VERSUS_N) {
        let _ = write!(page, "\n![{}]({})\n", plot.title, plot.name);
    }
    bars(&mut page, &report.bars);
    for table in report.tables {
        let _ = write!(page, "\n## {} keys, {}\n", grouped(table.n), table.key_type);
        let name = plots::versus_space_name(table);
        for plot in plots.iter().filter(|plot| plot.name == name) {
            let _ = write!(page, "\n![{}]({})\n", plot.title, plot.name);
        }
        contenders(&mut page, table);
    }
    threads(&mut page, report.scalings);
    page
}

fn bars(page: &mut String, bars: &[Bar]) {
    if bars.is_empty() {
        return;
    }
    let met = bars.iter().filter(|bar| bar.met).count();
    let _ = write!(
        page,
        "\n## Targets\n\nSet in advance. {met} of {} met; a target for lookups must be met in all three columns.\n\n\
         | keys | case | target | measured | |\n|---|---|---|---|---|\n",
        bars.len()
    );
    for Bar { n, key_type, case, wanted, measured, met } in bars {
        let verdict = if *met { "met" } else { "**missed**" };
        let n = grouped(*n);
        let _ = writeln!(page, "| {n} {key_type} | {case} | {wanted} | {measured} | {verdict} |");
    }
}

fn contenders(page: &mut String, table: &Table) {
    page.push_str("\n| filter | bits/key | rate | excess |");
    for (name, _) in COLUMNS {
        let _ = write!(page, " {name} |");
    }
    page.push_str("\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for row in by_time(table) {
        let _ = write!(
            page,
            "| {} | {:.2} | {} | {:.2} |",
            name(row),
            row.bits_per_key,
            rate(row, table.n),
            row.excess_bits()
        );
        for (_, op) in COLUMNS {
            let _ = write!(page, " {} |", cell(table, row, op));
        }
        page.push('\n');
    }
    yardstick(page, table);
}

/// The filter rows, sorted by lookup time.
fn by_time(table: &Table) -> Vec<&Row> {
    let mut rows: Vec<&Row> = table.rows.iter().filter(|row| row.side != Side::Yardstick).collect();
    let time = |row: &Row| row.median(Op::Lookup(Share::Half)).unwrap_or(f64::INFINITY);
    rows.sort_by(|a, b| time(a).total_cmp(&time(b)));
    rows
}

fn name(row: &Row) -> String {
    let mut name =
        if row.side == Side::Ours { format!("**{}**", row.name) } else { row.name.to_owned() };
    for (count, what) in [
        (row.missing, "present keys not found"),
        (row.refused, "keys refused"),
        (row.disagreements, "batches with other answers"),
    ] {
        if count > 0 {
            let _ = write!(name, " (WRONG: {} {what})", grouped(count));
        }
    }
    name
}

fn rate(row: &Row, n: u64) -> String {
    let over = if row.keeps_rate(n) { "" } else { ", over" };
    format!("{:.3} %{over}", row.rate() * 100.0)
}

/// A time; for our filters with the ratio to the best peer.
fn cell(table: &Table, row: &Row, op: Op) -> String {
    let op = if op == Op::Insert && row.median(op).is_none() { Op::Build } else { op };
    let Some(time) = row.median(op) else { return "–".to_owned() };
    let time = time_of(time);
    match row.side {
        Side::Ours => match table.ratio_to_best_peer(row, op) {
            Some(ratio) => format!("**{time}** ({ratio:.2}×)"),
            None => format!("**{time}**"),
        },
        _ if table.best_peer(op).is_some_and(|best| best.name == row.name) => format!("{time} *"),
        _ => time,
    }
}

fn time_of(nanoseconds: f64) -> String {
    if nanoseconds < 100.0 { format!("{nanoseconds:.1}") } else { format!("{nanoseconds:.0}") }
}

fn yardstick(page: &mut String, table: &Table) {
    let shares = [Share::All, Share::Half, Share::None];
    let Some(best) = table.yardstick(Op::BatchLookup(shares[0])) else { return };
    let times = |op: fn(Share) -> Op| {
        shares
            .map(|share| best.median(op(share)).map_or_else(|| "–".to_owned(), time_of))
            .join(" | ")
    };
    let (single, batch) = (times(Op::Lookup), times(Op::BatchLookup));
    let _ = writeln!(page, "| _{}_ | – | – | – | – | {single} | – | {batch} |", best.name);
}

fn threads(page: &mut String, scalings: &[Scaling]) {
    if scalings.is_empty() {
        return;
    }
    page.push_str(
        "\n## Threads\n\nThe filters that threads share; each of two threads takes half of the keys. Lookups are hits.\n\n\
         | keys | filter | operation | one thread | two threads | speed-up |\n|---|---|---|---|---|---|\n",
    );
    for scaling in scalings {
        let time = |samples| stats::median(samples).map_or_else(|| "–".to_owned(), time_of);
        let _ = writeln!(
            page,
            "| {} {} | {} | {} | {} | {} | {} |",
            grouped(scaling.n),
            scaling.key_type,
            scaling.name,
            scaling.work.name(),
            time(&scaling.one),
            time(&scaling.two),
            scaling.speedup().map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}×")),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars;
    use crate::keys::KeyType;

    fn row(name: &'static str, side: Side, nanoseconds: f64) -> Row {
        let mut row = Row::new(name, side);
        (row.bits_per_key, row.absent, row.found) = (10.0, 1_000_000, 10_000);
        for (_, op) in COLUMNS {
            row.record(op, nanoseconds);
        }
        row
    }

    fn page_of(table: Table) -> String {
        let tables = [table];
        let machine = Machine {
            date: "2026-11-15".to_owned(),
            commit: "abc".to_owned(),
            hardware: "a machine".to_owned(),
        };
        let bars = bars::check(&tables, &[]);
        let command = "make bench".to_owned();
        markdown(&Report { machine: &machine, command, tables: &tables, scalings: &[], bars }, &[])
    }

    #[test]
    fn rows_and_bars_that_we_lose_are_in_the_report() {
        let rows = vec![row("BlockedBloom", Side::Ours, 8.0), row("fastbloom", Side::Peer, 4.0)];
        let page = page_of(Table { n: 1_000_000, key_type: KeyType::U64, rows });
        assert!(page.contains("| **8.0** (0.50×) |"), "{page}");
        assert!(page.contains("| 4.0 * |"), "{page}");
        assert!(page.contains("**missed**"), "{page}");
        let (peer, ours) = (page.find("| fastbloom |"), page.find("| **BlockedBloom** |"));
        assert!(peer.is_some() && peer < ours, "sorted by time: {page}");
    }

    #[test]
    fn a_peer_that_loses_keys_or_misses_the_rate_is_marked() {
        let mut liar = row("cuckoofilter", Side::Peer, 4.0);
        (liar.missing, liar.found) = (1234, 30_000);
        let page = page_of(Table { n: 1_000_000, key_type: KeyType::U64, rows: vec![liar] });
        assert!(page.contains("cuckoofilter (WRONG: 1,234 present keys not found)"), "{page}");
        assert!(page.contains("3.000 %, over"), "{page}");
    }

    #[test]
    fn every_line_of_a_table_has_as_many_cells_as_its_head() {
        let rows = vec![
            row("Bloom", Side::Ours, 8.0),
            row("fastbloom", Side::Peer, 4.0),
            row("line reads", Side::Yardstick, 2.0),
        ];
        let page = page_of(Table { n: 1_000_000, key_type: KeyType::U64, rows });
        let table = page.split("## 1,000,000 keys").nth(1).unwrap_or_default();
        let cells: Vec<usize> = table
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.matches('|').count())
            .collect();
        assert_eq!(cells, [13; 5]);
    }
}
