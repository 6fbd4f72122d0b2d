//! `ironbloom info`: what is in a filter file?

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use ironbloom::any::{AnyFilter, KeyHash};
use ironbloom::multi::{Attributes, MultiFilter as _};
use ironbloom::{BloomParams, CuckooLayout, CuckooParams, Filter as _, Form, StageKind};

use crate::report::{self, Cell, Record};
use crate::{Outcome, file, number, output, rows};

/// Show what a filter file holds: kind, hash, parameters, keys, rate
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom info seen.ibf
  ironbloom info --json seen.ibf | jq .estimated_rate")]
pub(crate) struct InfoArgs {
    /// The filter
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &InfoArgs) -> Result<Outcome> {
    let filter = file::open(&args.filter)?;
    output::print(&report::show_record(&record(&args.filter, &filter), args.json))?;
    Ok(Outcome::Found)
}

/// The filter in a line, with the number of keys that its maker knows better than itself: a Bloom filter does not
/// count a key that looks present when it comes.
pub(crate) fn summary(path: &Path, filter: &AnyFilter, keys: u64) -> String {
    let bytes = filter.size_in_bytes() as u64;
    let mut text = format!(
        "{}: {}, {} keys, {}",
        path.display(),
        filter.kind(),
        number::count(keys),
        number::bytes(bytes),
    );
    if keys > 0 {
        let bits_per_key = bytes as f64 * 8.0 / keys as f64;
        text +=
            &format!(", {bits_per_key:.2} bits/key, rate {}", number::rate(filter.estimate_rate()));
    }
    text
}

/// The filter field by field.
pub(crate) fn record(path: &Path, filter: &AnyFilter) -> Record {
    let bytes = filter.size_in_bytes() as u64;
    let hash = match filter.key_hash() {
        KeyHash::Hash(hash_fn) => hash_fn.to_string(),
        KeyHash::Row(hash_fn) => format!("{hash_fn}, another for each attribute"),
        KeyHash::Integer => "none, keys are integers".to_owned(),
    };
    let mut record: Record = vec![
        ("file", Cell::text(path.display().to_string())),
        ("kind", Cell::text(filter.kind().name())),
        ("hash", Cell::text(hash)),
        ("keys", Cell::count(filter.len())),
        ("estimated keys", estimate(filter.estimate_len())),
        ("capacity", Cell::count(filter.capacity())),
        ("over capacity", Cell::yes_no(filter.is_over_capacity())),
        ("estimated rate", Cell::rate(filter.estimate_rate())),
        ("size", Cell::bytes(bytes)),
        (
            "bits/key",
            if filter.is_empty() {
                Cell::none("–")
            } else {
                Cell::float(bytes as f64 * 8.0 / filter.len() as f64, 2)
            },
        ),
    ];
    record.extend(parameters(filter));
    record
}

fn estimate(value: f64) -> Cell {
    if value.is_finite() {
        Cell::count(value.round() as u64)
    } else {
        Cell::none("all bits are set")
    }
}

fn bloom_parameters(params: &BloomParams) -> Record {
    let form = if params.form() == Form::Flat { "flat" } else { "segmented" };
    vec![
        ("bits", Cell::count(params.bits())),
        ("probes", Cell::count(params.probes().into())),
        ("form", Cell::text(form)),
        ("scheme", Cell::text(params.scheme().name())),
        ("rate at capacity", Cell::rate(params.rate_at(params.capacity()))),
    ]
}

fn cuckoo_parameters(params: &CuckooParams) -> Record {
    let packed = params.layout() == CuckooLayout::Packed;
    vec![
        ("buckets", Cell::count(params.buckets())),
        ("fingerprint bits", Cell::count(params.fingerprint_bits().into())),
        ("layout", Cell::text(if packed { "packed" } else { "plain" })),
        ("rate at capacity", Cell::rate(params.rate_at(params.capacity()))),
    ]
}

fn attribute_names(attributes: &Attributes) -> (&'static str, Cell) {
    ("attributes", Cell::text(attributes.names().join(", ")))
}

/// What only this kind has.
fn parameters(filter: &AnyFilter) -> Record {
    match filter {
        AnyFilter::Bloom(f) => bloom_parameters(&f.params()),
        AnyFilter::Blocked(f) => vec![
            ("blocks", Cell::count(f.params().blocks())),
            ("rate at capacity", Cell::rate(f.params().rate_at(f.params().capacity()))),
        ],
        AnyFilter::SplitBlock(f) => vec![
            ("blocks", Cell::count(f.params().blocks())),
            ("rate at capacity", Cell::rate(f.params().rate_at(f.params().capacity()))),
        ],
        AnyFilter::Counting(f) => {
            let mut record = bloom_parameters(&f.params());
            record[0].0 = "counters";
            record.push(("saturated counters", Cell::count(f.saturated())));
            record
        }
        AnyFilter::DLeft(f) => vec![
            ("buckets", Cell::count(4 * f.params().buckets())),
            ("remainder bits", Cell::count(f.params().remainder_bits().into())),
            ("saturated cells", Cell::count(f.saturated())),
            ("stashed keys", Cell::count(f.stashed())),
            ("rate at capacity", Cell::rate(f.params().rate_at(f.params().capacity()))),
        ],
        AnyFilter::Cuckoo(f) => {
            let mut record = cuckoo_parameters(&f.params());
            record.insert(3, ("load", Cell::float(f.fill(), 3)));
            record
        }
        AnyFilter::Parallel(f) => {
            let mut record = vec![attribute_names(f.attributes())];
            record.extend(bloom_parameters(&f.params()));
            record[1].0 = "counters an attribute";
            record.push(("counters above 15", Cell::count(f.surpluses())));
            let values = if f.estimate_values().all(f64::is_finite) {
                let values = f.estimate_values().map(|values| values.round() as u64);
                rows::by_attribute(f.attributes(), values)
            } else {
                Cell::none("all counters are in use")
            };
            record.push(("estimated values", values));
            record
        }
        AnyFilter::Joint(f) => {
            let mut record = vec![
                attribute_names(f.attributes()),
                ("partial queries", Cell::yes_no(f.is_partial())),
            ];
            if f.is_partial() {
                let values = (0..f.attributes().len()).filter_map(|i| f.distinct_values(i));
                record.push(("distinct values", rows::by_attribute(f.attributes(), values)));
            }
            record.push(("rows with copies", Cell::count(f.copied())));
            record.extend(cuckoo_parameters(&f.params()));
            record
        }
        AnyFilter::Fuse(f) => vec![
            ("fingerprint bits", Cell::count(f.width().into())),
            ("cells a key", Cell::count(f.arity().cells().into())),
        ],
        AnyFilter::Scalable(f) => {
            let of = if f.params().stages_of() == StageKind::Blocked { "blocked" } else { "bloom" };
            vec![
                ("stages", Cell::count(f.stages().len() as u64)),
                ("stages of", Cell::text(of)),
                ("growth", Cell::count(f.params().growth())),
                ("tightening", Cell::float(f.params().tightening(), 2)),
                ("rate held", Cell::rate(f.params().rate())),
            ]
        }
        AnyFilter::Windowed(f) => vec![
            ("probes", Cell::count(f.params().probes().into())),
            ("slices", Cell::count((f.params().probes() + f.params().ages()).into())),
            ("generation", Cell::count(f.params().generation())),
            ("rate at worst", Cell::rate(f.params().rate())),
        ],
        _ => Record::new(),
    }
}
