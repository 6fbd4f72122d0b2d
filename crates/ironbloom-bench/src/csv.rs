//! Every measurement as a line of CSV, for readers who make their own plots.

use std::fmt::Write as _;

use crate::contender::Side;
use crate::keys::KeyType;
use crate::stats::quantile;
use crate::table::Table;
use crate::threads::Scaling;

/// All tables, then the threads.
pub(crate) fn csv(tables: &[Table], scalings: &[Scaling]) -> String {
    let mut csv = String::from(
        "keys,key_type,filter,side,operation,ns_median,ns_min,ns_quartile1,ns_quartile3,samples,bits_per_key,rate\n",
    );
    for table in tables {
        for row in &table.rows {
            for (op, samples) in &row.samples {
                let side = match row.side {
                    Side::Ours => "ours",
                    Side::Peer => "peer",
                    Side::Yardstick => "yardstick",
                };
                line(&mut csv, table.n, table.key_type, [row.name, side, op.name()], samples);
                let rate =
                    if row.absent > 0 { format!("{:.6}", row.rate()) } else { String::new() };
                let _ = writeln!(csv, ",{:.3},{rate}", row.bits_per_key);
            }
        }
    }
    for Scaling { n, key_type, name, work, one, two, .. } in scalings {
        for (samples, threads) in [(one, "one thread"), (two, "two threads")] {
            let operation = format!("{}, {threads}", work.name());
            line(&mut csv, *n, *key_type, [name, "threads", &operation], samples);
            csv.push_str(",,\n");
        }
    }
    csv
}

fn line(csv: &mut String, n: u64, key_type: KeyType, texts: [&str; 3], samples: &[f64]) {
    let quoted =
        |text: &str| if text.contains(',') { format!("\"{text}\"") } else { text.to_owned() };
    let texts = texts.map(quoted);
    let _ = write!(csv, "{n},{key_type},{}", texts.join(","));
    for share in [0.5, 0.0, 0.25, 0.75] {
        let _ = write!(csv, ",{:.3}", quantile(samples, share).unwrap_or(f64::NAN));
    }
    let _ = write!(csv, ",{}", samples.len());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Op, Row};

    #[test]
    fn every_line_has_the_columns_of_the_head_and_names_with_commas_are_quoted() {
        let mut row = Row::new("line reads, 16 ahead", Side::Yardstick);
        row.record(Op::Insert, 2.0);
        row.record(Op::Insert, 4.0);
        let csv = csv(&[Table { n: 1000, key_type: KeyType::U64, rows: vec![row] }], &[]);
        let (head, line) = csv.trim_end().split_once('\n').unwrap();
        let start = "1000,u64,\"line reads, 16 ahead\",yardstick,insert,3.000,2.000,2.500,3.500,2,";
        assert!(line.starts_with(start), "{line}");
        assert_eq!(line.replace("reads, 16", "").matches(',').count(), head.matches(',').count());
    }
}
