//! `ironbloom plan`: what does each kind of filter cost?

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{ArgGroup, Args, ValueEnum as _};
use ironbloom::Kind;
use ironbloom::plan::Shape;
use ironbloom::recommend::{Offer, Sought, recommend};
use serde_json::json;

use crate::failure::Advice;
use crate::kinds::KindArg;
use crate::plot::{self, Curve};
use crate::report::{self, Cell, Record};
use crate::{Outcome, dash, number, output, recommend};

/// Compare the kinds of filter for a number of keys, a rate, or a memory limit
///
/// Give any two of --capacity, --rate and --memory; the third is computed, for every kind.
#[derive(Args)]
#[command(
    group(ArgGroup::new("given").args(["capacity", "rate", "memory"]).multiple(true).required(true)),
    after_help = "\
Examples:
  ironbloom plan --capacity 10M --rate 1%            how much memory?
  ironbloom plan --capacity 10M --memory 16MiB       what rate?
  ironbloom plan --memory 64MiB --rate 0.1%          how many keys?
  ironbloom plan --capacity 10M --rate 1% --plot rates.svg

Columns: probes and cache lines/lookup are the maximum numbers of positions and cache lines read for a key that is present; \
scalable is planned for its first stage; windowed counts the keys of its window; the keys of joint are rows.

The recommendation is for keys that are looked up often and never removed. It prefers blocked, the fastest kind, \
unless that takes a quarter more memory than bloom or has twice its rate. docs/choosing.md covers other needs."
)]
pub(crate) struct PlanArgs {
    /// Keys to hold, e.g. 10M
    #[arg(long, value_name = "N", value_parser = number::parse_count, allow_negative_numbers = true)]
    capacity: Option<u64>,

    /// False-positive rate, e.g. 1%
    #[arg(long, value_name = "P", value_parser = number::parse_rate, allow_negative_numbers = true)]
    rate: Option<f64>,

    /// Memory limit, e.g. 64MiB
    #[arg(long, value_name = "BYTES", value_parser = number::parse_bytes, allow_negative_numbers = true)]
    memory: Option<u64>,

    /// Plot the rate against bits per key, for all kinds, to an SVG file
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Capacity of the plot when none is given: large enough that sizes per key have settled.
const PLOT_CAPACITY: u64 = 1_000_000;

pub(crate) fn run(args: &PlanArgs) -> Result<Outcome> {
    if let Some(path) = &args.plot {
        dash::require_file(path, "--plot must be a file: standard output has the table")?;
    }
    let (sought, plan) = plan(args)?;
    let offer = |kind: KindArg| {
        let (keys, shape) = plan(kind)?;
        Some(Offer { plan: kind.plan(), keys, shape })
    };
    let offers: Vec<Offer> =
        KindArg::value_variants().iter().filter_map(|&kind| offer(kind)).collect();
    let Some(recommendation) = recommend(&offers, sought) else {
        return Err(Advice::error(
            "no kind of filter fits into that little memory",
            "give more --memory, fewer keys or a higher --rate",
        ));
    };
    let of = |kind: KindArg| offers.iter().find(|offer| offer.plan.name == kind.name);
    let kinds = KindArg::value_variants().iter().copied().filter(|kind| !kind.is(Kind::Bitmap));
    let records: Vec<Record> = kinds.map(|kind| record(kind, of(kind))).collect();
    let bitmap = of(KindArg::named("bitmap"));
    output::print(&if args.json {
        let document = json!({
            "recommendation": recommend::json(&recommendation, sought),
            "kinds": report::json_records(&records),
            "bitmap": bitmap.map(|offer| json!({
                "integers": offer.keys,
                "size": offer.shape.bytes(),
            })),
        });
        format!("{document:#}\n")
    } else {
        let table = report::text_table(&records);
        format!("{table}\n{}\n{}", recommend::text(&recommendation, sought), about_bitmap(bitmap))
    })?;
    if let Some(path) = &args.plot {
        let capacity = args.capacity.unwrap_or(PLOT_CAPACITY);
        let drawing = plot::rates(&curves(capacity), capacity);
        std::fs::write(path, drawing).with_context(|| path.display().to_string())?;
    }
    Ok(Outcome::Found)
}

/// Keys and shape of a kind, if it fits.
type Fit = Box<dyn Fn(KindArg) -> Option<(u64, Shape)>>;

/// Goal of a plan, and how to reach it with a kind.
fn plan(args: &PlanArgs) -> Result<(Sought, Fit)> {
    let bloom = KindArg::named("bloom");
    Ok(match (args.capacity, args.rate, args.memory) {
        (Some(capacity), Some(rate), None) => {
            bloom.shape(capacity, rate)?; // what is impossible for every kind is an error, not an empty table
            let shape = move |kind: KindArg| Some((capacity, kind.shape(capacity, rate).ok()?));
            (Sought::Size, Box::new(shape))
        }
        (Some(capacity), None, Some(memory)) => {
            bloom.shape(capacity, 0.5)?;
            let shape = move |kind: KindArg| Some((capacity, kind.rate_within(capacity, memory)?));
            (Sought::Rate, Box::new(shape))
        }
        (None, Some(rate), Some(memory)) => {
            bloom.shape(1, rate)?;
            (Sought::Keys, Box::new(move |kind: KindArg| kind.keys_within(rate, memory)))
        }
        _ => {
            return Err(Advice::error(
                "give two of --capacity, --rate and --memory",
                "ironbloom plan --capacity 10M --rate 1%",
            ));
        }
    })
}

/// A bitmap counts possible integers and not keys, so it cannot stand in one table with the others.
fn about_bitmap(bitmap: Option<&Offer>) -> String {
    bitmap.map_or(String::new(), |offer| {
        format!(
            "If keys are integers below {}, bitmap is exact in {}.\n",
            number::count(offer.keys),
            number::bytes(offer.shape.bytes()),
        )
    })
}

fn record(kind: KindArg, offer: Option<&Offer>) -> Record {
    let cell = |make: &dyn Fn(&Offer) -> Cell| offer.map_or_else(|| Cell::none("–"), make);
    vec![
        ("kind", Cell::text(kind.name)),
        ("keys", cell(&|offer| Cell::count(offer.keys))),
        ("rate", cell(&|offer| Cell::rate(offer.shape.rate))),
        ("bits/key", cell(&|offer| Cell::float(offer.bits_per_key(), 2))),
        ("size", cell(&|offer| Cell::bytes(offer.shape.bytes()))),
        ("probes", cell(&|offer| Cell::count(offer.shape.probes.into()))),
        ("cache lines/lookup", cell(&|offer| Cell::count(offer.shape.lines.into()))),
        ("remove", Cell::yes_no(kind.abilities.remove)),
        ("grow", Cell::yes_no(kind.abilities.grow)),
        ("merge", Cell::yes_no(kind.abilities.merge)),
        ("forget", Cell::yes_no(kind.abilities.forget)),
    ]
}

/// Bits per key over rates from 1/2 to 10^-6, for the kinds whose size follows from keys and rate. The segmented
/// form lies on the flat one, and joint on cuckoo.
fn curves(capacity: u64) -> Vec<Curve> {
    let rates: Vec<f64> = (0..=120).map(|i| 0.5 * 10f64.powf(-f64::from(i) * 0.0475)).collect();
    let kinds = KindArg::value_variants()
        .iter()
        .filter(|kind| !["bitmap", "segmented", "joint"].contains(&kind.name));
    let mut curves: Vec<Curve> = kinds
        .map(|kind| Curve {
            name: kind.name.to_owned(),
            points: rates
                .iter()
                .filter_map(|&rate| kind.shape(capacity, rate).ok())
                .map(|shape| (shape.bits as f64 / capacity as f64, shape.rate))
                .collect(),
        })
        .collect();
    let bound = rates.iter().map(|&rate| (ironbloom::sizing::lower_bound(rate), rate)).collect();
    curves.push(Curve { name: "lower bound".to_owned(), points: bound });
    curves
}
