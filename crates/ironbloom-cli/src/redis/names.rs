//! The keys of a filter on a server.
//!
//! ```text
//! one filter       seen                       the filter
//!                  {seen}:loading-…           while it is loaded: in the same slot, so that it can be renamed
//!
//! in n shards      seen                       a hash: ironbloom:shards n, ironbloom:route xxh3-64-mix64
//!                  {seen:0/n} … {seen:n-1/n}  the filters
//! ```
//!
//! What stands in braces decides the slot of a cluster, and so the server. A CRC gives strings that differ in one digit
//! slots that are far apart: the shards of a filter spread, and those of other filters spread otherwise. The number of
//! shards is part of their names, so that a filter can be replaced by one in more or fewer shards: whoever still asks
//! the old ones gets right answers until they are gone, and an error after that.

use anyhow::Result;

use crate::failure::Advice;

/// More shards than a cluster can have servers are of no use.
pub(super) const MOST_SHARDS: u32 = 1000;

/// Field of the hash under the filter's own key: how many shards.
pub(super) const SHARDS_FIELD: &str = "ironbloom:shards";
/// Field of the same hash: how keys find their shard.
pub(super) const ROUTE_FIELD: &str = "ironbloom:route";
/// `ironbloom::route::shard_of` of the XXH3-64 of the key, seed 0.
pub(super) const ROUTE: &str = "xxh3-64-mix64";

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

    /// The keys of the filters: of all shards, or of the one filter.
    pub(super) fn parts(&self, shards: Option<u32>) -> Vec<Self> {
        match shards {
            Some(shards) => (0..shards).map(|shard| self.shard(shard, shards)).collect(),
            None => vec![self.clone()],
        }
    }

    /// A key in the same slot that nobody else uses.
    pub(super) fn temporary(&self) -> String {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let number = now.map_or(0, |now| now.as_nanos() as u64) ^ u64::from(std::process::id());
        let suffix = format!("loading-{:016x}", ironbloom::hash::mix64(number));
        match self.has_tag() {
            true => format!("{}:{suffix}", self.0),
            false => format!("{{{}}}:{suffix}", self.0),
        }
    }

    /// Whether a part of the key alone decides its slot: what is between its first `{` and the next `}`, if anything.
    fn has_tag(&self) -> bool {
        let behind = self.0.split_once('{').and_then(|(_, behind)| behind.split_once('}'));
        behind.is_some_and(|(tag, _)| !tag.is_empty())
    }

    /// Shards have braces of their own, and the first ones count.
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
    fn a_temporary_key_is_in_the_slot_of_the_real_one() {
        for (key, start) in [
            ("seen", "{seen}:loading-"),
            ("{user}:seen", "{user}:seen:loading-"),
            ("a{b", "{a{b}:loading-"),
            ("{seen:0/3}", "{seen:0/3}:loading-"),
        ] {
            let temporary = Name::new(key).temporary();
            assert!(temporary.starts_with(start), "{key}: {temporary}");
        }
    }

    #[test]
    fn two_temporary_keys_differ() {
        let name = Name::new("seen");
        let first = name.temporary();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert_ne!(first, name.temporary());
    }
}
