//! Finding the values of the cells: peeling, as in [GL22].
//!
//! ```text
//! peel      while a cell has a single key:  take that key away from all its cells, push (key, cell)
//! assign    pop (key, cell):  A[cell] = fingerprint(key) ^ the key's other cells
//! ```
//!
//! The cell of a pair is not among the cells of the keys peeled after it, which are popped before it, so filling it
//! disturbs none of them. A cell does not have to store its keys: their number and their exclusive or give the last
//! one.
//!
//! Peeling fails for some seeds and is then retried with the next: with three cells, for one seed in 30 at 1000 keys,
//! and almost never from 10^5 on. But just above 11,480 keys, where the paper's segments double in length, 39 of 40
//! seeds fail. So after every [`PATIENCE`] failures the array grows, and one more segment was always enough there.
//!
//! The cells store a sum over their keys, and peeling starts from the cells, so the order in which the keys are counted
//! does not matter. They are therefore processed in parts that stay in the cache (`keys`), and the pending cells are
//! kept in a queue (`queue`). Duplicate hashes are dropped, also in `keys`.

use super::keys::Keys;
use super::queue::{self, Queue};
use super::{Arity, FuseParams, Layout, fingerprint};
use crate::bits::packed::Packed;
use crate::error::ParamError;
use crate::hash::mix64;
use crate::kernel::Words;
use crate::sizing;

/// Seeds tried before the array grows.
const PATIENCE: u64 = 2;

/// The array grows by this fraction of its segments, and by at least one.
const GROWTH: u64 = 32;

/// Returns the layout, the cells and the number of distinct hashes. `N` is the arity.
pub(super) fn build<const N: usize>(
    hashes: &[u64],
    params: FuseParams,
) -> Result<(Layout, Packed, u64), ParamError> {
    let mut keys = Keys::new(hashes.len())?;
    let mut attempt = 0;
    loop {
        let seed = mix64(attempt);
        keys.fill(hashes, seed);
        let len = keys.as_slice().len() as u64;
        let layout = Layout::for_attempt(len, params.arity, seed, attempt)
            .ok_or(ParamError::Memory { bytes: u64::MAX })?;
        if let Some(places) = peel::<N>(&layout, keys.as_mut_slice())? {
            let cells = assign::<N>(&layout, keys.as_slice(), bytes(&places), params.width)?;
            return Ok((layout, cells, len));
        }
        // A duplicate key is never peeled. If that was the reason, the same seed deserves another try.
        if !keys.make_distinct(hashes, seed) {
            attempt += 1;
        }
    }
}

impl Layout {
    /// Returns `None` if the number of cells exceeds 64 bits.
    pub(super) fn for_attempt(len: u64, arity: Arity, seed: u64, attempt: u64) -> Option<Self> {
        let cells_of_a_key = arity.cells();
        let segment_length = sizing::fuse_segment_length(cells_of_a_key, len);
        if len == 0 {
            return Self::new(seed, segment_length, 0, arity);
        }
        let cells = (len as f64 * sizing::fuse_size_factor(cells_of_a_key, len)).ceil() as u64;
        let segments = cells.div_ceil(segment_length);
        let least = segments.saturating_sub(u64::from(cells_of_a_key) - 1).max(1);
        let segment_count = least + attempt / PATIENCE * (segments / GROWTH).max(1);
        Self::new(seed, segment_length, segment_count, arity)
    }
}

/// The state of each cell while keys are peeled.
struct Cells<'a> {
    /// The exclusive or of the keys of this cell.
    xors: &'a mut [u64],
    /// Four times their number, plus the exclusive or, over the keys, of this cell's index (0 to 3) among the key's
    /// cells.
    tallies: &'a mut [u8],
}

const ONE_KEY: u8 = 4;
const PLACE: u8 = ONE_KEY - 1;

/// Cells scanned at a time for those with a single key.
const SCAN: usize = queue::ROOM;

/// Reorders the keys so that each has a cell that no later one has, and returns which of its cells that is. `None` if
/// there is no such order.
fn peel<const N: usize>(layout: &Layout, keys: &mut [u64]) -> Result<Option<Words>, ParamError> {
    let mut xors = Words::zeroed(layout.cells().saturating_mul(64))?;
    let mut tallies = Words::zeroed(layout.cells().saturating_mul(8))?;
    let mut places = Words::zeroed(keys.len() as u64 * 8)?;
    let mut cells = Cells { xors: xors.to_mut(), tallies: bytes_mut(&mut tallies) };
    if !cells.tally::<N>(layout, keys) {
        return Ok(None);
    }
    let peeled = cells.take_all_away::<N>(layout, keys, bytes_mut(&mut places))?;
    Ok((peeled == keys.len()).then_some(places))
}

impl Cells<'_> {
    /// Counts every key in its cells. Returns false if a cell has more than 63, where about three are expected.
    fn tally<const N: usize>(&mut self, layout: &Layout, keys: &[u64]) -> bool {
        let mut fits = true;
        for &key in keys {
            for (place, cell) in layout.cells_of::<N>(key).into_iter().enumerate() {
                let cell = cell as usize;
                let tally = self.tallies[cell].wrapping_add(ONE_KEY) ^ place as u8;
                fits &= tally >= ONE_KEY;
                self.tallies[cell] = tally;
                self.xors[cell] ^= key;
            }
        }
        fits
    }

    /// Peels the keys: the cells now hold them, and `keys` collects them again as they are peeled. Returns how many
    /// were peeled.
    fn take_all_away<const N: usize>(
        &mut self,
        layout: &Layout,
        keys: &mut [u64],
        places: &mut [u8],
    ) -> Result<usize, ParamError> {
        let mut peeled = 0;
        let mut single = Queue::new();
        for start in (0..self.tallies.len()).step_by(SCAN) {
            single = single.make_room()?;
            for (cell, tally) in (start..).zip(self.tallies[start..].iter().take(SCAN)) {
                single.push_if(is_single(*tally), cell);
            }
            while let Some(cell) = single.pop() {
                let tally = self.tallies[cell];
                if !is_single(tally) {
                    continue;
                }
                let key = self.xors[cell];
                keys[peeled] = key;
                places[peeled] = tally & PLACE;
                peeled += 1;
                single = single.make_room()?;
                for (place, cell) in layout.cells_of::<N>(key).into_iter().enumerate() {
                    let cell = cell as usize;
                    let tally = (self.tallies[cell] - ONE_KEY) ^ place as u8;
                    self.tallies[cell] = tally;
                    self.xors[cell] ^= key;
                    single.push_if(is_single(tally), cell);
                }
            }
        }
        Ok(peeled)
    }
}

#[inline]
fn is_single(tally: u8) -> bool {
    tally / ONE_KEY == 1
}

/// Fills the cells, starting with the key peeled last. Cells that no key had to itself stay zero.
fn assign<const N: usize>(
    layout: &Layout,
    keys: &[u64],
    places: &[u8],
    width: u32,
) -> Result<Packed, ParamError> {
    let mut packed = Packed::zeroed(layout.cells(), width)?;
    let mut filler = packed.filler();
    let mask = u64::MAX >> (64 - width);
    for (&key, &place) in keys.iter().zip(&places[..keys.len()]).rev() {
        let cells = layout.cells_of::<N>(key);
        let own = cells[usize::from(place) % N];
        // The key's own cell is still zero, so it can be included.
        let others = cells.into_iter().fold(0, |xor, cell| xor ^ filler.window(cell));
        filler.fill(own, (others ^ fingerprint(key, width)) & mask);
    }
    Ok(packed)
}

fn bytes(words: &Words) -> &[u8] {
    bytemuck::cast_slice(words)
}

fn bytes_mut(words: &mut Words) -> &mut [u8] {
    bytemuck::cast_slice_mut(words.to_mut())
}

#[cfg(test)]
mod tests {
    use super::super::mix;
    use super::*;

    const ARITIES: [Arity; 2] = [Arity::Three, Arity::Four];

    fn build_with(hashes: &[u64], arity: Arity) -> (Layout, Packed, u64) {
        let params = FuseParams::new(8, arity).unwrap();
        match arity {
            Arity::Three => build::<3>(hashes, params).unwrap(),
            Arity::Four => build::<4>(hashes, params).unwrap(),
        }
    }

    /// Returns the attempt that succeeded.
    fn attempt_of(layout: &Layout) -> u64 {
        (0..).find(|&attempt| mix64(attempt) == layout.seed).unwrap()
    }

    /// Returns the hash that a seed mixes to `mixed`: the inverse of `mix64`.
    fn unmix(mixed: u64, seed: u64) -> u64 {
        let unshift = |x: u64, by: u32| x ^ (x >> by) ^ (x >> (2 * by));
        // Newton's iteration for the inverse of an odd number doubles the right bits: 3 to 96.
        let inverse = |odd: u64| {
            (0..5).fold(odd, |inverse, _| {
                inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)))
            })
        };
        let x = unshift(mixed, 31).wrapping_mul(inverse(0x94d0_49bb_1331_11eb));
        let x = unshift(x, 27).wrapping_mul(inverse(0xbf58_476d_1ce4_e5b9));
        unshift(x, 30).wrapping_sub(0x9e37_79b9_7f4a_7c15).wrapping_sub(seed)
    }

    /// Two mixed hashes that differ only in bit 40 have the same three cells in a small array.
    #[test]
    fn a_set_made_to_fail_for_many_seeds_is_built_in_a_larger_array() {
        let failing = 40;
        let hashes: Vec<u64> = (0..failing)
            .flat_map(|i| [0, 1 << 40].map(|bit| unmix(mix64(i) & !(0xffff << 32) | bit, mix64(i))))
            .collect();
        let (layout, _, len) = build_with(&hashes, Arity::Three);
        assert_eq!(len, 2 * failing);
        assert!(attempt_of(&layout) >= failing);
        let first = Layout::for_attempt(len, Arity::Three, 0, 0).unwrap();
        assert!(layout.segments.count() >= first.segments.count() + failing / PATIENCE);
    }

    #[test]
    fn more_keys_in_a_cell_than_can_be_counted_fail_an_attempt_only() {
        for crowd in [63, 64, 65, 200] {
            let hashes: Vec<u64> = (0..crowd).map(|i| unmix(i << 40, mix64(0))).collect();
            let mut keys: Vec<u64> = hashes.iter().map(|hash| mix(*hash, mix64(0))).collect();
            let layout = Layout::for_attempt(crowd, Arity::Three, mix64(0), 0).unwrap();
            let (mut xors, mut tallies) = (vec![0; 1000], vec![0; 1000]);
            let mut cells = Cells { xors: &mut xors, tallies: &mut tallies };
            assert_eq!(cells.tally::<3>(&layout, &keys), crowd < 64);
            assert!(peel::<3>(&layout, &mut keys).unwrap().is_none());
            let (layout, _, len) = build_with(&hashes, Arity::Three);
            assert_eq!((attempt_of(&layout) > 0, len), (true, crowd));
        }
    }

    #[test]
    fn the_array_grows_after_so_many_failures() {
        for arity in ARITIES {
            for len in [1, 100, 11_500, 1_000_000] {
                let cells = |attempt| Layout::for_attempt(len, arity, 0, attempt).unwrap().cells();
                assert_eq!(cells(0), cells(PATIENCE - 1));
                assert!(cells(PATIENCE) > cells(0) && cells(2 * PATIENCE) > cells(PATIENCE));
                assert!(len < 1_000_000 || cells(PATIENCE) as f64 <= 1.04 * cells(0) as f64);
            }
        }
    }

    #[test]
    fn a_few_seeds_are_enough_even_where_most_fail() {
        for arity in ARITIES {
            for n in [10, 100, 1000, 11_480, 11_500, 11_521] {
                for set in 0..20 {
                    let hashes: Vec<u64> = (0..n).map(|i| mix64(set << 40 | i)).collect();
                    let attempt = attempt_of(&build_with(&hashes, arity).0);
                    assert!(attempt <= 4, "{n} keys, {arity:?}: {attempt}");
                }
            }
        }
    }
}
