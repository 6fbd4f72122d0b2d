//! `ironbloom redis info`: the filters of a server or cluster, how full they are, and what to do about it.

use anyhow::Result;
use clap::Args;

use super::ServerArgs;
use super::advice::{State, advice};
use super::server::{Family, Server};
use crate::report::{self, Cell, Record};
use crate::{Outcome, number, output};

/// List the filters of a server with their fill, rate and advice
///
/// Looks through the whole server, or through all servers of a cluster, in small steps. How many bits of a Bloom filter are
/// set must be counted, for which the server stops: it is done for filters of up to 64 MiB, which takes some milliseconds
/// each, and with --count-bits for all.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom redis info --url redis://127.0.0.1:6379
  ironbloom redis info --match 'seen:*' --url redis://127.0.0.1:6379
  ironbloom redis info --json --url redis://127.0.0.1:6379 | jq '.[] | select(.advice != null)'")]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Only keys like this: ? is any character, * any number of them
    #[arg(long = "match", value_name = "PATTERN", default_value = "*")]
    pattern: String,

    /// List so many filters at most
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    most: u32,

    /// Count the bits of larger filters, too
    #[arg(long)]
    count_bits: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Bits of larger filters are counted only on request.
const MOST_COUNTED: u64 = 64 << 20;

/// The types of filters, ours and those of others.
const TYPES: [&str; 5] = ["MBbloom--", "MBbloomCF", "ironbloom", "ironcucko", "bloomfltr"];

pub(crate) fn run(args: &InfoArgs) -> Result<Outcome> {
    let mut server = args.server.connect()?;
    let (found, is_cut) = find(&mut server, &args.pattern, args.most as usize)?;
    let mut records = Vec::new();
    for (key, kind) in &found {
        // A key that is gone meanwhile is left out.
        if let Some(state) = look(&mut server, key, kind, args.count_bits)? {
            records.push(record(key, &state));
        }
    }
    if records.is_empty() && !args.json {
        output::note("there are no filters");
    }
    output::print(&report::show_table(&records, args.json))?;
    if is_cut {
        let most = number::count(args.most.into());
        output::note(&format!("there are more than {most} filters: give --match or --most"));
    }
    Ok(Outcome::Found)
}

/// A key and the type of its filter.
type Typed = (Vec<u8>, &'static str);

/// The keys of filters in order; and whether there are more.
fn find(server: &mut Server, pattern: &str, most: usize) -> Result<(Vec<Typed>, bool)> {
    let mut found = Vec::new();
    for kind in TYPES {
        // One more than asked for, to know whether there are more.
        let wanted = most + 1;
        let keys = server.scan(kind, pattern, wanted)?;
        found.extend(keys.into_iter().map(|key| (key, kind)));
    }
    found.sort();
    let is_cut = found.len() > most;
    found.truncate(most);
    Ok((found, is_cut))
}

/// The state of a filter; nothing if there is none any more.
fn look(server: &mut Server, key: &[u8], kind: &str, count_bits: bool) -> Result<Option<State>> {
    let family =
        if kind.ends_with("CF") || kind == "ironcucko" { Family::Cuckoo } else { Family::Bloom };
    let Some(fields) = server.info(family, key, None)? else { return Ok(None) };
    let fields = match fields {
        Ok(fields) => fields,
        Err(loading) => return Ok(Some(State::loading(kind, loading))),
    };
    if family == Family::Cuckoo {
        return Ok(Some(State::of_cuckoo(kind, &fields)));
    }
    let is_small = fields.number("Size").is_some_and(|size| size <= MOST_COUNTED);
    let full = match is_small || count_bits {
        // Only our module knows this word.
        true => server.info(family, key, Some("FULL")).ok().flatten().and_then(Result::ok),
        false => None,
    };
    Ok(Some(State::of_bloom(kind, full.as_ref().unwrap_or(&fields))))
}

fn record(key: &[u8], state: &State) -> Record {
    let count = |value: Option<u64>| value.map_or_else(|| Cell::none("–"), Cell::count);
    let rate = |value: Option<f64>| value.map_or_else(|| Cell::none("–"), Cell::rate);
    vec![
        ("key", Cell::text(String::from_utf8_lossy(key).escape_debug().to_string())),
        ("layout", Cell::text(&*state.layout)),
        ("keys", count(state.keys)),
        ("capacity", count(state.capacity)),
        ("stages", count(state.stages)),
        ("fill", rate(state.fill)),
        ("rate now", rate(state.rate)),
        ("memory", state.bytes.map_or_else(|| Cell::none("–"), Cell::bytes)),
        ("advice", advice(state).map_or_else(|| Cell::none("–"), Cell::text)),
    ]
}
