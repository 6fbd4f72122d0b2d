//! Finding the numbers for the cells: peeling, as in [GL22].
//!
//! ```text
//! peel      while a cell has a single key:  take that key away from all its cells, push (key, cell)
//! assign    pop (key, cell):  A[cell] = fingerprint(key) ^ the key's other cells
//! ```
//!
//! The cell of a pair is none of the cells of the keys peeled after it, which are popped before it: filling it
//! disturbs none of them. A cell need not know its keys: their number and their exclusive or tell the last one.
//!
//! Peeling fails for some seeds and is then tried with the next: with three cells for one seed in 30 at 1000 keys,
//! hardly ever from 10^5. But just above 11,480 keys, where the paper's segments double in length, 39 of 40 seeds
//! fail. So after every [`PATIENCE`] failures the array grows, and one segment more always was enough there.
//!
//! Keys are peeled from sorted order. Neighbours then have their cells in the same few segments, which stay in the
//! cache, and a hash that was given twice stands beside itself and is dropped.

use super::{Arity, FuseParams, Layout, fingerprint, mix};
use crate::error::ParamError;
use crate::hash::mix64;
use crate::packed::Packed;
use crate::sizing;

/// Seeds tried before the array grows.
const PATIENCE: u64 = 2;

/// The array grows by this part of its segments, and by one at least.
const GROWTH: u64 = 32;

/// The layout, the cells and the number of distinct hashes. `N` is the arity.
pub(super) fn build<const N: usize>(
    hashes: &[u64],
    params: FuseParams,
) -> Result<(Layout, Packed, u64), ParamError> {
    let mut keys = Vec::new();
    let mut peeling = Peeling::default();
    let mut attempt = 0;
    loop {
        let seed = mix64(attempt);
        sorted_distinct(hashes, seed, &mut keys)?;
        let layout = Layout::for_attempt(keys.len() as u64, params.arity, seed, attempt)
            .ok_or(ParamError::Memory { bytes: u64::MAX })?;
        if peeling.peel::<N>(&layout, &mut keys)? {
            let cells = assign::<N>(&layout, &keys, &peeling.places, params.width)?;
            return Ok((layout, cells, keys.len() as u64));
        }
        attempt += 1;
    }
}

impl Layout {
    /// `None` if the number of cells exceeds 64 bits.
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

/// The hashes mixed with the seed, in order, each once. Mixing is a bijection, so distinct ones stay distinct.
fn sorted_distinct(hashes: &[u64], seed: u64, keys: &mut Vec<u64>) -> Result<(), ParamError> {
    keys.clear();
    reserve(keys, hashes.len() as u64)?;
    keys.extend(hashes.iter().map(|hash| mix(*hash, seed)));
    keys.sort_unstable();
    keys.dedup();
    Ok(())
}

/// What is known of each cell while keys are taken away.
#[derive(Default)]
struct Peeling {
    /// The exclusive or of the keys that have this cell.
    xors: Vec<u64>,
    /// Four times their number, plus the exclusive or of which of its cells (0 to 3) this is for each.
    tallies: Vec<u8>,
    /// For each key in the order of peeling, which of its cells it had to itself.
    places: Vec<u8>,
    /// Cells that had a single key when they were pushed.
    single: Vec<usize>,
}

const ONE_KEY: u8 = 4;
const PLACE: u8 = ONE_KEY - 1;

impl Peeling {
    /// Brings the keys into an order in which each has a cell that no later one has. False if there is none.
    fn peel<const N: usize>(
        &mut self,
        layout: &Layout,
        keys: &mut [u64],
    ) -> Result<bool, ParamError> {
        let cells = layout.cells();
        zero(&mut self.xors, cells)?;
        zero(&mut self.tallies, cells)?;
        zero(&mut self.places, keys.len() as u64)?;
        if !self.tally::<N>(layout, keys) {
            return Ok(false);
        }
        // From here on the cells know the keys, and `keys` takes them up again as they are peeled.
        let mut peeled = 0;
        for cell in 0..self.tallies.len() {
            self.single.push(cell);
            while let Some(cell) = self.single.pop() {
                if self.tallies[cell] / ONE_KEY != 1 {
                    continue;
                }
                let key = self.xors[cell];
                keys[peeled] = key;
                self.places[peeled] = self.tallies[cell] & PLACE;
                peeled += 1;
                self.take_away::<N>(layout, key);
            }
        }
        Ok(peeled == keys.len())
    }

    /// Counts every key in its cells. False if a cell has more than 63, where about three are expected.
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

    #[inline]
    fn take_away<const N: usize>(&mut self, layout: &Layout, key: u64) {
        for (place, cell) in layout.cells_of::<N>(key).into_iter().enumerate() {
            let cell = cell as usize;
            let tally = (self.tallies[cell] - ONE_KEY) ^ place as u8;
            self.tallies[cell] = tally;
            self.xors[cell] ^= key;
            if tally / ONE_KEY == 1 {
                self.single.push(cell);
            }
        }
    }
}

/// Fills the cells, the key peeled last first. Cells that no key had to itself stay zero.
fn assign<const N: usize>(
    layout: &Layout,
    keys: &[u64],
    places: &[u8],
    width: u32,
) -> Result<Packed, ParamError> {
    let mut packed = Packed::zeroed(layout.cells(), width)?;
    for (&key, &place) in keys.iter().zip(places).rev() {
        let cells = layout.cells_of::<N>(key);
        let own = cells[usize::from(place)];
        // The own cell is still zero, so it may take part.
        let others = cells.into_iter().fold(0, |xor, cell| xor ^ packed.get(cell));
        packed.set(own, others ^ fingerprint(key, width));
    }
    Ok(packed)
}

fn zero<T: Clone + Default>(vec: &mut Vec<T>, len: u64) -> Result<(), ParamError> {
    vec.clear();
    reserve(vec, len)?;
    vec.resize(len as usize, T::default());
    Ok(())
}

/// Room in an empty array, or an error where `Vec` would abort the program.
fn reserve<T>(vec: &mut Vec<T>, len: u64) -> Result<(), ParamError> {
    let bytes = len.saturating_mul(size_of::<T>() as u64);
    let len = usize::try_from(len).map_err(|_| ParamError::Memory { bytes })?;
    vec.try_reserve_exact(len).map_err(|_| ParamError::Memory { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARITIES: [Arity; 2] = [Arity::Three, Arity::Four];

    fn build_with(hashes: &[u64], arity: Arity) -> (Layout, Packed, u64) {
        let params = FuseParams::new(8, arity).unwrap();
        match arity {
            Arity::Three => build::<3>(hashes, params).unwrap(),
            Arity::Four => build::<4>(hashes, params).unwrap(),
        }
    }

    /// The attempt that succeeded.
    fn attempt_of(layout: &Layout) -> u64 {
        (0..).find(|&attempt| mix64(attempt) == layout.seed).unwrap()
    }

    /// The hash that a seed mixes to `mixed`: `mix64` backwards.
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

    /// Two mixed hashes that differ in bit 40 only have the same three cells in a small array.
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
        assert!(layout.segment_count() >= first.segment_count() + failing / PATIENCE);
    }

    #[test]
    fn more_keys_in_a_cell_than_can_be_counted_fail_an_attempt_only() {
        for crowd in [63, 64, 65, 200] {
            let hashes: Vec<u64> = (0..crowd).map(|i| unmix(i << 40, mix64(0))).collect();
            let mut keys = Vec::new();
            sorted_distinct(&hashes, mix64(0), &mut keys).unwrap();
            let layout = Layout::for_attempt(crowd, Arity::Three, mix64(0), 0).unwrap();
            let mut peeling = Peeling::default();
            zero(&mut peeling.xors, layout.cells()).unwrap();
            zero(&mut peeling.tallies, layout.cells()).unwrap();
            assert_eq!(peeling.tally::<3>(&layout, &keys), crowd < 64);
            assert!(!peeling.peel::<3>(&layout, &mut keys).unwrap());
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
