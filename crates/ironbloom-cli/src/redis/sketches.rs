//! RedisBloom's other types, which Ironbloom's module does not have: found on the old server, before anything moves.

use std::collections::BTreeSet;

use anyhow::Result;

use super::server::Server;

/// The types, and their names for people.
const TYPES: [(&str, &str); 3] =
    [("CMSk-TYPE", "count-min sketch"), ("TopK-TYPE", "top-k"), ("TDIS-TYPE", "t-digest")];

/// What to do about such a key.
pub(super) const STAYS: &str = "cannot move: Ironbloom's module has no such type, and a server with it does not start from a file \
     that holds one";

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
