//! RedisBloom's other types, which are not filters: listed beside them, and named before anything moves.

use std::collections::BTreeSet;

use anyhow::Result;

use super::server::Server;

/// The types, and their names for people.
const TYPES: [(&str, &str); 3] =
    [("CMSk-TYPE", "count-min sketch"), ("TopK-TYPE", "top-k"), ("TDIS-TYPE", "t-digest")];

/// Why a dump of filters leaves such a key out, and how it moves.
pub(super) const STAYS: &str =
    "it has no chunks: it moves with an RDB file, to a replica, or by DUMP and RESTORE";

/// Keys of these types with the name of the type, `most` of each and one more at most.
pub(super) fn find(
    server: &mut Server,
    pattern: &str,
    most: usize,
) -> Result<Vec<(Vec<u8>, &'static str)>> {
    let mut found = BTreeSet::new();
    for (kind, name) in TYPES {
        let mut keys = 0;
        server.scan(kind, pattern, |key| {
            keys += 1;
            found.insert((key, name));
            keys <= most
        })?;
    }
    Ok(found.into_iter().collect())
}
