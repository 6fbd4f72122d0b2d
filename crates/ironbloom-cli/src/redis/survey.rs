//! `ironbloom redis dump --dry-run`: what of a server can move to another one, and what cannot.

use anyhow::Result;

use super::info::{self, Entry};
use super::server::Server;
use super::sketches;
use crate::report::{self, Cell, Record};
use crate::{Outcome, number, output};

/// The type of valkey-bloom's filters.
const VALKEY_BLOOM: &str = "bloomfltr";

/// Lists the filters whose keys match, and the keys of other types that cannot move.
pub(super) fn run(server: &mut Server, pattern: &str, json: bool) -> Result<Outcome> {
    let (found, _) = info::find(server, pattern, usize::MAX, true)?;
    let mut records = Vec::new();
    let mut staying = 0u64;
    let mut add = |key: &[u8], layout: &str, reason: Option<&str>| {
        staying += u64::from(reason.is_some());
        records.push(record(key, layout, reason));
    };
    for (Entry { key, .. }, kind) in &found {
        // A key that has disappeared meanwhile is skipped.
        if let Some(state) = info::look(server, key, kind, false)? {
            let reason = match *kind {
                VALKEY_BLOOM => Some("valkey-bloom has no SCANDUMP"),
                "MBbloomCF" if state.keys == Some(0) => {
                    Some("it has no keys, and RedisBloom has no dump of it: create it there")
                }
                _ if state.is_loading() => Some("it is still being loaded"),
                _ => None,
            };
            add(key, &state.layout, reason);
        }
    }
    for (key, kind) in sketches::find(server, pattern, usize::MAX)? {
        add(&key, kind, Some(sketches::STAYS));
    }
    output::print(&report::show_table(&records, json))?;
    if staying == 0 {
        return Ok(Outcome::Found);
    }
    output::note(&format!("keys that cannot move: {}", number::count(staying)));
    Ok(Outcome::NotFound)
}

fn record(key: &[u8], layout: &str, reason: Option<&str>) -> Record {
    vec![
        ("key", Cell::text(String::from_utf8_lossy(key).escape_debug().to_string())),
        ("layout", Cell::text(layout)),
        ("moves", Cell::text(if reason.is_none() { "yes" } else { "no" })),
        ("reason", reason.map_or_else(|| Cell::none("–"), Cell::text)),
    ]
}
