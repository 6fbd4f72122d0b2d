//! `ironbloom redis info`: the filters of a server or cluster, how full they are, and what to do about it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use clap::Args;
use ironbloom::format::dump::Family;

use super::ServerArgs;
use super::advice::{State, advice};
use super::names::Name;
use super::server::{FilterInfo, Found, Server};
use super::sketches;
use crate::report::{self, Cell, Record};
use crate::{Outcome, number, output};

/// List the filters of a server with their fill, rate and advice
///
/// Scans the whole server, or all servers of a cluster, in small steps. The fill of a Bloom filter is known only by counting
/// its bits, which blocks the server: this is done for filters of up to 64 MiB, a few milliseconds each, and with
/// --count-bits for all. A sharded filter is listed once, with the totals of its shards. RedisBloom's other types, CMS, TOPK and
/// TDIGEST, are listed as well, by name and type.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom redis info --url redis://127.0.0.1:6379
  ironbloom redis info --match 'seen:*' --url redis://127.0.0.1:6379
  ironbloom redis info --json --url redis://127.0.0.1:6379 | jq '.[] | select(.advice != null)'")]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Only filters whose keys match: ? is any character, * any number of characters
    #[arg(long = "match", value_name = "PATTERN", default_value = "*")]
    pattern: String,

    /// List at most this many filters
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    most: u32,

    /// Count the bits of larger filters, too
    #[arg(long)]
    count_bits: bool,

    /// List each shard of a filter separately
    #[arg(long)]
    each_shard: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Bits of larger filters are counted only on request.
const MAX_COUNTED: u64 = 64 << 20;

/// The types of filters, ours and those of others.
const TYPES: [&str; 5] = ["MBbloom--", "MBbloomCF", "ironbloom", "ironcucko", "bloomfltr"];

pub(crate) fn run(args: &InfoArgs) -> Result<Outcome> {
    let mut server = args.server.connect()?;
    let (found, is_cut) = find(&mut server, &args.pattern, args.most as usize, args.each_shard)?;
    let mut records = Vec::new();
    for (entry, kind) in &found {
        let seen = match entry.shards {
            Some(shards) => look_at_shards(&mut server, entry, shards, kind, args.count_bits)?,
            None => look(&mut server, &entry.key, kind, args.count_bits)?
                .map(|state| (advice(&state), state)),
        };
        // A key that has disappeared meanwhile is skipped.
        if let Some((advice, state)) = seen {
            records.push(record(entry, &state, advice));
        }
    }
    let others = sketches::find(&mut server, &args.pattern, args.most as usize)?;
    if records.is_empty() && others.is_empty() && !args.json {
        output::note("there are no filters");
    }
    for (key, kind) in &others {
        let entry = Entry { key: key.clone(), shards: None };
        let state = State::of_another_type(kind);
        records.push(record(&entry, &state, None));
    }
    output::print(&report::show_table(&records, args.json))?;
    if is_cut {
        let most = number::count(args.most.into());
        output::note(&format!("there are more than {most} filters: give --match or --most"));
    }
    Ok(Outcome::Found)
}

/// A filter, by its own key; in this many shards, if it has some.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    shards: Option<u32>,
}

impl Entry {
    /// By the key of a filter, which may be a shard of one.
    fn new(key: Vec<u8>, each_shard: bool) -> Self {
        match Name::of_shard(&key).filter(|_| !each_shard) {
            Some((name, shards)) => {
                Self { key: name.key().as_bytes().to_vec(), shards: Some(shards) }
            }
            None => Self { key, shards: None },
        }
    }
}

/// The filters with the types of their keys, in order; and whether there are more.
pub(super) fn find(
    server: &mut Server,
    pattern: &str,
    most: usize,
    each_shard: bool,
) -> Result<(Vec<(Entry, &'static str)>, bool)> {
    let mut patterns = vec![pattern.to_owned()];
    if pattern != "*" {
        patterns.push(format!("{{{pattern}:[0-9]*/[0-9]*}}"));
    }
    let mut found = BTreeMap::new();
    for kind in TYPES {
        let mut entries = BTreeSet::new();
        for pattern in &patterns {
            server.scan(kind, pattern, |key| {
                entries.insert(Entry::new(key, each_shard));
                // One more than asked for, to know whether there are more.
                entries.len() <= most
            })?;
        }
        found.extend(entries.into_iter().map(|entry| (entry, kind)));
    }
    let is_cut = found.len() > most;
    Ok((found.into_iter().take(most).collect(), is_cut))
}

/// All shards of a filter together, and what to do about them.
fn look_at_shards(
    server: &mut Server,
    entry: &Entry,
    shards: u32,
    kind: &str,
    count_bits: bool,
) -> Result<Option<(Option<String>, State)>> {
    let name = Name::new(&String::from_utf8_lossy(&entry.key));
    let (mut states, mut missing) = (Vec::new(), Vec::new());
    for (shard, part) in name.parts(Some(shards)).iter().enumerate() {
        match look(server, part.key().as_bytes(), kind, count_bits)? {
            Some(state) => states.push(state),
            None => missing.push(shard.to_string()),
        }
    }
    if states.is_empty() {
        return Ok(None);
    }
    let is_used = matches!(server.find(name.key()), Ok(Found::Shards(used)) if used == shards);
    let state = State::of_shards(&states);
    let advice = match missing.len() {
        _ if !is_used => Some(format!(
            "{} does not refer to these shards: a load is in progress, or they are left over",
            name.key()
        )),
        0 => advice(&state),
        1 => Some(format!("shard {} is missing: load it again with --replace", missing[0])),
        _ => {
            Some(format!("shards {} are missing: load it again with --replace", missing.join(", ")))
        }
    };
    Ok(Some((advice, state)))
}

/// The state of a filter; nothing if there is none any more.
pub(super) fn look(
    server: &mut Server,
    key: &[u8],
    kind: &str,
    count_bits: bool,
) -> Result<Option<State>> {
    let family =
        if kind.ends_with("CF") || kind == "ironcucko" { Family::Cuckoo } else { Family::Bloom };
    let Some(fields) = server.info(family, key, None)? else { return Ok(None) };
    let fields = match fields {
        FilterInfo::Fields(fields) => fields,
        FilterInfo::Loading(bytes) => {
            return Ok(Some(State::loading(kind, format!("is being loaded, {bytes}"))));
        }
    };
    if family == Family::Cuckoo {
        return Ok(Some(State::of_cuckoo(kind, &fields)));
    }
    let is_small = fields.number("Size").is_some_and(|size| size <= MAX_COUNTED);
    let full = match is_small || count_bits {
        // Only our module knows this word.
        true => server.info(family, key, Some("FULL")).ok().flatten().and_then(FilterInfo::fields),
        false => None,
    };
    Ok(Some(State::of_bloom(kind, full.as_ref().unwrap_or(&fields))))
}

fn record(entry: &Entry, state: &State, advice: Option<String>) -> Record {
    let count = |value: Option<u64>| value.map_or_else(|| Cell::none("–"), Cell::count);
    let rate = |value: Option<f64>| value.map_or_else(|| Cell::none("–"), Cell::rate);
    vec![
        ("key", Cell::text(String::from_utf8_lossy(&entry.key).escape_debug().to_string())),
        ("shards", count(entry.shards.map(u64::from))),
        ("layout", Cell::text(&*state.layout)),
        ("keys", count(state.keys)),
        ("capacity", count(state.capacity)),
        ("stages", count(state.stages)),
        ("fill", rate(state.fill)),
        ("rate now", rate(state.rate)),
        ("memory", state.bytes.map_or_else(|| Cell::none("–"), Cell::bytes)),
        ("advice", advice.map_or_else(|| Cell::none("–"), Cell::text)),
    ]
}
