//! The keys of a filter on a server.
//!
//! ```text
//! one filter       seen                       the filter
//!                  {seen}:loading-…           while it is loaded: in the same slot, so that it can be renamed
//!                  {seen}:loaded-…            for a moment: that this load was finished (`failover.rs`)
//!
//! in n shards      seen                       a hash: ironbloom:shards n, ironbloom:route xxh3-64-mix64
//!                  {seen:0/n} … {seen:n-1/n}  the filters
//! ```
//!
//! The part in braces decides the slot of a cluster, and so the server. A CRC maps strings that differ in one digit to distant
//! slots: the shards of a filter spread, and those of other filters spread differently. The number of
//! shards is part of their names, so that a filter can be replaced by one in more or fewer shards: clients that
//! still ask the old ones get right answers until they are gone, and then an error.

use anyhow::Result;
use ironbloom::format::dump::MAX_SHARDS;

use crate::failure::Advice;

/// Field of the hash under the filter's own key: how many shards.
pub(super) const SHARDS_FIELD: &str = "ironbloom:shards";
/// Field of the same hash: how keys find their shard.
pub(super) const ROUTE_FIELD: &str = "ironbloom:route";
/// `ironbloom::route::shard_of` of the XXH3-64 of the key, seed 0.
pub(super) const ROUTE: &str = "xxh3-64-mix64";

/// Distinguishes the keys of a load from those of all others.
#[derive(Clone, Debug)]
pub(super) struct LoadId(String);

impl LoadId {
    pub(super) fn new() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let number = now.map_or(0, |now| now.as_nanos() as u64) ^ u64::from(std::process::id());
        Self(format!("{:016x}", ironbloom::hash::mix64(number)))
    }
}

/// The key of a logical filter.
#[derive(Clone, Debug)]
pub(super) struct Name(String);

impl Name {
    pub(super) fn new(key: &str) -> Self {
        Self(key.to_owned())
    }

    pub(super) fn key(&self) -> &str {
        &self.0
    }

    /// The key of a shard.
    pub(super) fn shard(&self, shard: u32, shards: u32) -> Self {
        Self(format!("{{{}:{shard}/{shards}}}", self.0))
    }

    /// The filter to which this key of a shard belongs, and its number of shards.
    pub(super) fn of_shard(key: &[u8]) -> Option<(Self, u32)> {
        let inner = std::str::from_utf8(key).ok()?.strip_prefix('{')?.strip_suffix('}')?;
        let (name, place) = inner.rsplit_once(':')?;
        let (shard, shards) = place.split_once('/')?;
        let (name, shard, shards) = (Self::new(name), shard.parse().ok()?, shards.parse().ok()?);
        let is_one =
            shard < shards && shards <= MAX_SHARDS && name.shard(shard, shards).0.as_bytes() == key;
        (is_one && name.refuse_braces().is_ok()).then_some((name, shards))
    }

    /// The keys of the filters: of all shards, or of the one filter.
    pub(super) fn parts(&self, shards: Option<u32>) -> Vec<Self> {
        match shards {
            Some(shards) => (0..shards).map(|shard| self.shard(shard, shards)).collect(),
            None => vec![self.clone()],
        }
    }

    /// The key of this filter while it is loaded.
    pub(super) fn temporary(&self, load: &LoadId) -> String {
        self.beside(&format!("loading-{}", load.0))
    }

    /// A key that marks this load as finished.
    pub(super) fn receipt(&self, load: &LoadId) -> String {
        self.beside(&format!("loaded-{}", load.0))
    }

    /// A key in the same slot.
    fn beside(&self, suffix: &str) -> String {
        match self.has_tag() {
            true => format!("{}:{suffix}", self.0),
            false => format!("{{{}}}:{suffix}", self.0),
        }
    }

    /// Returns true if a part of the key alone decides its slot: what is between its first `{` and the next `}`, if anything.
    fn has_tag(&self) -> bool {
        let tag = self.0.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        tag.is_some_and(|(tag, _)| !tag.is_empty())
    }

    /// Names of shards contain braces, and the first ones count.
    pub(super) fn refuse_braces(&self) -> Result<()> {
        if self.0.contains(['{', '}']) {
            return Err(Advice::error(
                format!("--key {:?} has braces", self.0),
                "the keys of shards get braces that spread them over a cluster; choose a name without",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_named_by_number_and_total() {
        let keys: Vec<String> =
            Name::new("seen").parts(Some(3)).into_iter().map(|name| name.0).collect();
        assert_eq!(keys, ["{seen:0/3}", "{seen:1/3}", "{seen:2/3}"]);
        assert_eq!(Name::new("seen").parts(None)[0].0, "seen");
    }

    #[test]
    fn the_filter_of_a_shard_is_known_by_its_key() {
        for shard in Name::new("a:b").parts(Some(12)) {
            let (name, shards) = Name::of_shard(shard.0.as_bytes()).unwrap();
            assert_eq!((name.key(), shards), ("a:b", 12));
        }
        for key in [
            "seen",
            "{seen}",
            "{seen:3/3}",
            "{seen:01/3}",
            "{seen:0/3}x",
            "{a{b}:0/3}",
            "{a:0/1001}",
        ] {
            assert!(Name::of_shard(key.as_bytes()).is_none(), "{key}");
        }
    }

    #[test]
    fn a_temporary_key_is_in_the_slot_of_the_real_one() {
        for (key, start) in [
            ("seen", "{seen}:loading-"),
            ("{user}:seen", "{user}:seen:loading-"),
            ("a{b", "{a{b}:loading-"),
            ("{seen:0/3}", "{seen:0/3}:loading-"),
        ] {
            let temporary = Name::new(key).temporary(&LoadId::new());
            assert!(temporary.starts_with(start), "{key}: {temporary}");
        }
    }

    #[test]
    fn the_keys_of_two_loads_differ() {
        let name = Name::new("seen");
        let first = LoadId::new();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert_ne!(name.temporary(&first), name.temporary(&LoadId::new()));
        assert_ne!(name.temporary(&first), name.receipt(&first));
    }
}
