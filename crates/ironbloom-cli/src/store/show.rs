//! Statistics of a guard, for people and for programs.

use std::time::Duration;

use ironbloom_store::{Choice, Stats};

use crate::number;
use crate::report::{self, Cell, Record};

/// A duration: seconds for programs, a fitting unit for people.
pub(super) fn time(value: Duration) -> Cell {
    let seconds = value.as_secs_f64();
    let text = if seconds > 0.0 && seconds < 1e-6 {
        format!("{:.0} ns", seconds * 1e9)
    } else {
        number::time(value)
    };
    Cell::of(seconds, text)
}

fn time_if_known(value: Option<Duration>) -> Cell {
    value.map_or_else(|| Cell::none("not measured yet"), time)
}

fn record(stats: &Stats) -> Record {
    let [skipped, false_positives, hits] = stats.shares();
    let rate = stats.measured_rate().map_or_else(|| Cell::none("not measured yet"), Cell::rate);
    let bits = stats.bits_per_key().map_or_else(|| Cell::none("–"), |bits| Cell::float(bits, 2));
    vec![
        ("kind", Cell::text(stats.kind.name())),
        ("keys", Cell::count(stats.keys)),
        ("capacity", Cell::count(stats.capacity)),
        ("dead keys", Cell::count(stats.dead)),
        ("filter", Cell::bytes(stats.filter_bytes)),
        ("bits/key", bits),
        ("rebuilds", Cell::count(stats.rebuilds)),
        ("lookups", Cell::count(stats.lookups())),
        ("skipped P1", Cell::rate(skipped)),
        ("false positives P2", Cell::rate(false_positives)),
        ("hits P3", Cell::rate(hits)),
        ("unguarded", Cell::count(stats.unguarded())),
        ("rate planned", Cell::rate(stats.rate)),
        ("rate measured", rate),
        ("reads avoided", Cell::count(stats.skipped())),
        ("skip C1 seconds", time_if_known(stats.skip_cost())),
        ("read C2 seconds", time_if_known(stats.read_cost())),
        ("time saved seconds", time(stats.time_saved())),
        ("delta seconds", time(stats.delta())),
    ]
}

fn choice(choice: &Choice) -> Record {
    vec![
        ("kind", Cell::text(choice.kind.name())),
        ("rate", Cell::rate(choice.rate)),
        ("bits/key", Cell::float(choice.bits_per_key, 2)),
        ("filter", Cell::bytes(choice.filter_bytes)),
        ("wasted reads/1000", Cell::float(choice.wasted_per_thousand, 2)),
        ("delta seconds", time(choice.delta)),
    ]
}

pub(super) fn stats(stats: &Stats, json: bool) -> String {
    let choices: Vec<Record> = stats.choices().iter().map(choice).collect();
    if json {
        let mut value = report::json_record(&record(stats));
        value["choices"] = report::json_records(&choices);
        return format!("{value:#}\n");
    }
    format!(
        "{}\nfor these lookups, other filters would give:\n{}",
        report::text_record(&record(stats)),
        report::text_table(&choices)
    )
}
