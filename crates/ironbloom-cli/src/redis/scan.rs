//! Reads the chunks of a filter from a server, by SCANDUMP.

use anyhow::{Result, anyhow};
use ironbloom::format::dump::Family;

use super::server::{Server, family_command};

/// Iterates over the chunks of a filter on a server.
pub(super) struct Scan<'a> {
    family: Family,
    key: &'a str,
    iterator: i64,
}

impl<'a> Scan<'a> {
    pub(super) fn new(family: Family, key: &'a str) -> Self {
        Self { family, key, iterator: 0 }
    }

    /// The next chunk with its iterator, or `None` at the end.
    pub(super) fn next(&mut self, server: &mut Server) -> Result<Option<(i64, Vec<u8>)>> {
        let mut command = family_command(self.family, "SCANDUMP", self.key);
        let (iterator, bytes): (i64, Option<Vec<u8>>) = server.ask(command.arg(self.iterator))?;
        if iterator == 0 {
            return Ok(None);
        }
        if iterator <= self.iterator {
            // It would go on forever.
            let before = self.iterator;
            return Err(anyhow!("{}: chunk {iterator} came after chunk {before}", self.key));
        }
        self.iterator = iterator;
        Ok(Some((iterator, bytes.unwrap_or_default())))
    }
}
