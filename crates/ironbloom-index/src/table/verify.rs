//! All pages of a Parquet file, compared with their checksums.
//!
//! ```text
//!  column      indexed                    not indexed
//!  checksum    ours, of each whole page   the writer's: a CRC-32 in the header of a page, of what follows it, if there is one
//! ```

use std::ops::Range;

use super::page_header::{self, PageHeader};
use super::page_map::{ChunkPages, Spot, header_at};
use super::parquet::ParquetTable;
use super::{Compared, TableError, notes};

/// How the message starts when a page does not match the checksum that its writer put into it.
pub(super) const WRONG_CRC: &str = "page does not match the checksum of its writer";

/// Whether the writer's checksum is that of the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Crc {
    Right,
    Wrong,
    /// The writer has computed none.
    Absent,
}

/// The checksum in the header of this page, compared.
pub(super) fn crc_of(page: &[u8]) -> Crc {
    let header = page_header::parse(page);
    match header.and_then(|header| Some((header.crc?, page.get(header.header_bytes..)?))) {
        None => Crc::Absent,
        Some((crc, body)) if crc32fast::hash(body) == crc => Crc::Right,
        Some(_) => Crc::Wrong,
    }
}

/// What is wrong with a chunk, or with its checksums.
enum Fault {
    Error(TableError),
    NoChecksums,
}

impl ParquetTable {
    /// See [`super::Table::verify`].
    pub(super) fn verify(&self) -> Compared {
        let mut found = Compared::default();
        let schema = self.descriptor();
        for leaf in 0..schema.num_columns() {
            let groups = 0..self.row_groups();
            let mut no_checksums = false;
            for fault in groups.filter_map(|group| self.verify_chunk(group, leaf).err()) {
                match fault {
                    Fault::NoChecksums => no_checksums = true,
                    Fault::Error(error) => {
                        found.errors.push(error);
                        break;
                    }
                }
            }
            let name = schema.get_column_root(leaf).name();
            if no_checksums && found.unchecked.last().is_none_or(|last| last != name) {
                found.unchecked.push(name.to_owned());
            }
        }
        found
    }

    fn verify_chunk(&self, group: usize, leaf: usize) -> Result<(), Fault> {
        let parsed = self.group(group).map_err(Fault::Error)?;
        let chunk = parsed.row_group().column(leaf);
        let place = |at: u64| format!("column {}, byte {at}", chunk.column_path());
        let changed = |what: &str, at: u64| {
            Fault::Error(TableError::changed(
                self.file().location(),
                format!("{what}: {}", place(at)),
            ))
        };
        let failed = |error| Fault::Error(TableError::io(self.file().location(), error));
        let pages = self.chunk_pages(group, leaf).map_err(Fault::Error)?;
        if let Some(spots) = pages.as_deref().and_then(checked_spots) {
            for (spot, check) in spots {
                let bytes = self.file().read(range_of(&spot)).map_err(failed)?;
                if notes::checksum(&bytes) != check {
                    return Err(changed(super::page_reader::CHANGED, spot.offset));
                }
            }
            return Ok(());
        }
        let (start, length) = chunk.byte_range();
        let (mut at, end) = (start, start + length);
        let mut absent = false;
        while at < end {
            let header = header_at(self.file(), at..end).map_err(failed)?;
            let page = header.and_then(|header| page_range(&header, at, end));
            let page = page.ok_or_else(|| changed("no page header where there was one", at))?;
            let bytes = self.file().read(page.clone()).map_err(failed)?;
            match crc_of(&bytes) {
                Crc::Right => {}
                Crc::Absent => absent = true,
                Crc::Wrong => {
                    let what = format!("{WRONG_CRC}: {}", place(at));
                    return Err(Fault::Error(TableError::damaged(self.file().location(), what)));
                }
            }
            at = page.end;
        }
        if absent { Err(Fault::NoChecksums) } else { Ok(()) }
    }
}

/// All pages of a chunk with their checksums, if they have some.
fn checked_spots(pages: &ChunkPages) -> Option<Vec<(Spot, u32)>> {
    let spots = pages.dictionary.iter().chain(pages.pages.iter().map(|page| &page.spot));
    spots.map(|spot| Some((*spot, spot.check?))).collect()
}

fn range_of(spot: &Spot) -> Range<u64> {
    spot.offset..spot.offset + u64::from(spot.bytes)
}

/// The bytes of a page that begins with this header, if they fit.
fn page_range(header: &PageHeader, at: u64, end: u64) -> Option<Range<u64>> {
    let bytes = header.header_bytes.checked_add(header.body_bytes)? as u64;
    (bytes <= end - at).then(|| at..at + bytes)
}
