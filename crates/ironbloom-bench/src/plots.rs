//! The plots: lookup time against bits per key, and against the number of keys.

use crate::contender::Side;
use crate::keys::{KeyType, Share};
use crate::number::{grouped, short};
use crate::svg::{Area, Canvas, Scale};
use crate::table::{Op, Row, Table};

/// File name of the plot over all sizes.
pub(crate) const VERSUS_N: &str = "lookup-vs-n.svg";

const OURS: &str = "#c1440e";
const PEERS: &str = "#3b5b7a";
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 640.0;
const LEFT: f64 = 74.0;
const TOP: f64 = 66.0;
const BOTTOM: f64 = HEIGHT - 62.0;
const SINGLE: Op = Op::Lookup(Share::Half);
const BATCH: Op = Op::BatchLookup(Share::Half);

/// A plot and its file name.
pub(crate) struct Plot {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) svg: String,
}

/// Draws all plots that these tables allow.
pub(crate) fn all(tables: &[Table]) -> Vec<Plot> {
    let mut plots: Vec<Plot> = tables.iter().map(versus_space).collect();
    let integers: Vec<&Table> = tables.iter().filter(|t| t.key_type == KeyType::U64).collect();
    if integers.len() > 1 {
        plots.push(versus_n(&integers));
    }
    plots
}

/// File name of the plot of one table.
pub(crate) fn versus_space_name(table: &Table) -> String {
    let suffix = if table.key_type == KeyType::U64 { "" } else { "-strings" };
    format!("lookup-vs-space-{}{suffix}.svg", short(table.n))
}

fn colour(row: &Row) -> &'static str {
    if row.side == Side::Ours { OURS } else { PEERS }
}

/// Filters (not yardsticks) with their single-lookup times.
fn timed(table: &Table) -> Vec<(&Row, f64)> {
    let filters = table.rows.iter().filter(|row| row.side != Side::Yardstick);
    filters.filter_map(|row| Some((row, row.median(SINGLE)?))).collect()
}

fn versus_space(table: &Table) -> Plot {
    let rows = timed(table);
    let batches = table.rows.iter().filter_map(|row| row.median(BATCH));
    let (right, bottom) = (WIDTH - 24.0, BOTTOM);
    let x = Scale::around(rows.iter().map(|(row, _)| row.bits_per_key), 1.1, LEFT, right);
    let times = rows.iter().map(|&(_, time)| time).chain(batches);
    let y = Scale::around(times, 1.15, bottom, TOP);

    let title = format!("A lookup at 1 %, {} keys ({})", grouped(table.n), table.key_type);
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    head(
        &mut canvas,
        &title,
        "half of the keys present; full: one by one, hollow: in batches; left and down is better",
    );
    canvas.axes((&x, "bits per key"), (&y, "nanoseconds per lookup"), plain);
    if let Some(limit) = table.yardstick(BATCH).and_then(|row| row.median(BATCH)) {
        canvas.line(
            &[(LEFT, y.at(limit)), (right, y.at(limit))],
            "stroke=\"#888\" stroke-dasharray=\"6 4\"",
        );
        canvas.text(
            right,
            y.at(limit) - 5.0,
            "text-anchor=\"end\" fill=\"#666\"",
            "the memory itself: random line reads, prefetched",
        );
    }
    // All points before any label, so that no label covers a point.
    for &(row, time) in &rows {
        let (at, colour) = (x.at(row.bits_per_key), colour(row));
        if let Some(batch) = row.median(BATCH) {
            let stroke = format!("stroke=\"{colour}\" stroke-width=\"1\" stroke-dasharray=\"2 3\"");
            canvas.line(&[(at, y.at(time)), (at, y.at(batch))], &stroke);
            canvas.point(
                at,
                y.at(batch),
                &format!("fill=\"white\" stroke=\"{colour}\" stroke-width=\"1.5\""),
            );
        }
        canvas.point(at, y.at(time), &format!("fill=\"{colour}\""));
    }
    let within = Area { left: LEFT, top: TOP - 10.0, right: WIDTH - 4.0, bottom };
    for &(row, time) in &rows {
        canvas.label(x.at(row.bits_per_key), y.at(time), &within, colour(row), row.name);
    }
    Plot { name: versus_space_name(table), title, svg: canvas.finish() }
}

fn versus_n(tables: &[&Table]) -> Plot {
    let (right, bottom) = (WIDTH - 190.0, BOTTOM);
    let x = Scale::around(tables.iter().map(|table| table.n as f64), 1.15, LEFT, right);
    let times = tables.iter().flat_map(|table| timed(table)).map(|(_, time)| time);
    let y = Scale::around(times, 1.15, bottom, TOP);

    let title = "A lookup at 1 % by number of keys (u64)".to_owned();
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    head(&mut canvas, &title, "single lookups, half of the keys present; lower is better");
    canvas.axes((&x, "keys"), (&y, "nanoseconds per lookup"), |tick| {
        if tick >= 1000.0 { short(tick as u64) } else { plain(tick) }
    });
    let mut ends = Vec::new();
    for (row, _) in timed(tables[0]) {
        let mut points: Vec<(f64, f64)> = tables
            .iter()
            .filter_map(|table| {
                Some((x.at(table.n as f64), y.at(table.row(row.name)?.median(SINGLE)?)))
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some(&end) = points.last() else { continue };
        let dash = if row.side == Side::Ours { "" } else { " stroke-dasharray=\"5 3\"" };
        let stroke =
            format!("stroke=\"{}\" stroke-width=\"1.4\" opacity=\"0.85\"{dash}", colour(row));
        canvas.line(&points, &stroke);
        for &(x, y) in &points {
            canvas.point(x, y, &format!("fill=\"{}\"", colour(row)));
        }
        ends.push((row, end));
    }
    label_ends(&mut canvas, ends, right);
    Plot { name: VERSUS_N.to_owned(), title, svg: canvas.finish() }
}

/// Places names at the right, in the order of the line ends, moved apart as far as needed.
fn label_ends(canvas: &mut Canvas, mut ends: Vec<(&Row, (f64, f64))>, right: f64) {
    const STEP: f64 = 15.0;
    ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let mut places: Vec<f64> = ends.iter().map(|&(_, (_, y))| y).collect();
    for i in 1..places.len() {
        places[i] = places[i].max(places[i - 1] + STEP);
    }
    // Labels pushed out at the bottom move back up.
    let mut limit = BOTTOM + 14.0;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - STEP;
    }
    for ((row, (x, y)), place) in ends.into_iter().zip(places) {
        let colour = colour(row);
        let leader = format!("stroke=\"{colour}\" stroke-width=\"0.6\"");
        canvas.line(&[(x + 5.0, y), (right + 6.0, place)], &leader);
        canvas.text(right + 10.0, place + 4.0, &format!("fill=\"{colour}\""), row.name);
    }
}

fn head(canvas: &mut Canvas, title: &str, explanation: &str) {
    canvas.text(LEFT, 26.0, "font-size=\"18\"", title);
    canvas.text(LEFT, 46.0, "fill=\"#444\"", explanation);
    let words = WIDTH - 214.0;
    canvas.text(words, 26.0, &format!("fill=\"{OURS}\" font-size=\"14\""), "Ironbloom");
    canvas.text(
        words + 86.0,
        26.0,
        &format!("fill=\"{PEERS}\" font-size=\"14\""),
        "other libraries",
    );
}

fn plain(tick: f64) -> String {
    format!("{tick}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(n: u64) -> Table {
        let rows = [("Bloom", Side::Ours, 9.6, 20.0), ("fastbloom", Side::Peer, 9.7, 30.0)].map(
            |(name, side, bits, time)| {
                let mut row = Row::new(name, side);
                row.bits_per_key = bits;
                row.record(SINGLE, time);
                row.record(BATCH, time / 2.0);
                row
            },
        );
        Table { n, key_type: KeyType::U64, rows: rows.to_vec() }
    }

    #[test]
    fn pictures_are_well_formed_and_name_every_filter() {
        let plots = all(&[table(1_000_000), table(100_000_000)]);
        let names: Vec<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
        assert_eq!(names, ["lookup-vs-space-1M.svg", "lookup-vs-space-100M.svg", VERSUS_N]);
        for Plot { svg, .. } in plots {
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert_eq!(svg.matches('<').count(), svg.matches('>').count());
            assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
            assert!(svg.contains(">Bloom<") && svg.contains(">fastbloom<"));
        }
    }
}
