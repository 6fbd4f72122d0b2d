//! Which requests get these tiles?
//!
//! A request takes as long as a megabyte or two, so tiles with less than that between them come by one request, with what is
//! between them; and long ranges by several at once.

use std::ops::Range;

/// Bytes of a tile, the unit in which an object is requested and kept.
pub(super) const TILE_BYTES: u64 = 32 << 10;
/// Tiles between two wanted ones that are requested as well rather than asking twice.
const GAP: u64 = (1 << 20) / TILE_BYTES;
/// The most that one request asks for.
const LONGEST: u64 = (8 << 20) / TILE_BYTES;

/// The tiles that hold these bytes.
pub(super) fn tiles_of(bytes: &Range<u64>) -> Range<u64> {
    if bytes.is_empty() {
        return 0..0;
    }
    bytes.start / TILE_BYTES..bytes.end.div_ceil(TILE_BYTES)
}

/// The bytes of tiles, of an object of this length.
pub(super) fn bytes_of(tiles: &Range<u64>, len: u64) -> Range<u64> {
    tiles.start * TILE_BYTES..(tiles.end * TILE_BYTES).min(len)
}

/// Ranges of tiles to request, which hold all of these.
pub(super) fn requests(mut wanted: Vec<u64>) -> Vec<Range<u64>> {
    wanted.sort_unstable();
    wanted.dedup();
    let mut requests: Vec<Range<u64>> = Vec::new();
    for tile in wanted {
        match requests.last_mut() {
            Some(last) if tile - last.end <= GAP && tile + 1 - last.start <= LONGEST => {
                last.end = tile + 1;
            }
            _ => requests.push(tile..tile + 1),
        }
    }
    requests
}

/// Tiles to request beyond one that follows these present ones: as many as were read before it, up to a limit. So a reader
/// that goes through an object makes few requests, and one that picks parts of it reads few others.
pub(super) fn read_ahead(tile: u64, is_present: impl Fn(u64) -> bool) -> u64 {
    (1..=LONGEST.min(tile)).take_while(|before| is_present(tile - before)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_tiles_come_together_and_far_ones_do_not() {
        assert_eq!(requests(vec![]), []);
        assert_eq!(requests(vec![7, 5, 5, 20_000]), [5..8, 20_000..20_001]);
        assert_eq!(requests(vec![0, GAP + 1, 2 * GAP + 3]), [0..GAP + 2, 2 * GAP + 3..2 * GAP + 4]);
        let long: Vec<u64> = (0..2 * LONGEST + 5).collect();
        assert_eq!(
            requests(long),
            [0..LONGEST, LONGEST..2 * LONGEST, 2 * LONGEST..2 * LONGEST + 5]
        );
    }

    #[test]
    fn the_last_tile_ends_with_the_object() {
        assert_eq!(tiles_of(&(0..1)), 0..1);
        assert_eq!(tiles_of(&(TILE_BYTES..TILE_BYTES + 1)), 1..2);
        assert_eq!(tiles_of(&(9..9)), 0..0);
        assert_eq!(bytes_of(&(1..3), TILE_BYTES + 5), TILE_BYTES..TILE_BYTES + 5);
    }

    #[test]
    fn readers_that_go_on_get_twice_as_much_each_time() {
        assert_eq!(read_ahead(8, |tile| tile >= 4), 4);
        assert_eq!(read_ahead(8, |_| true), 8);
        assert_eq!(read_ahead(8, |_| false), 0);
        assert_eq!(read_ahead(0, |_| true), 0);
        assert_eq!(read_ahead(1 << 40, |_| true), LONGEST);
    }
}
