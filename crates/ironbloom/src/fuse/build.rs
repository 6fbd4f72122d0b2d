//! Finding the numbers for the cells: peeling, as in [GL22].
//!
//! ```text
//! peel      while a cell has a single key:  take that key away from all its cells, push (key, cell)
//! assign    pop (key, cell):  A[cell] = fingerprint(key) ^ the key's other cells
//! ```
//!
//! When a key is popped, no key popped later has a cell among those that count for it but its own, so what is
//! assigned stays right. A cell need not know its keys: their number and their exclusive or tell the last one.
//!
//! Peeling fails for some seeds (of a set of 11,500 keys, one seed in three) and is then tried with the next. After
//! every [`PATIENCE`] failures the array grows, so that a set which has no place in it gets a larger one.
//!
//! Keys are peeled from sorted order. Neighbours then have their cells in the same few segments, which stay in the
//! cache, and a hash that was given twice stands beside itself and is dropped.

use super::{Arity, FuseParams, Layout, fingerprint};
use crate::error::ParamError;
use crate::hash::mix64;
use crate::packed::Packed;
use crate::sizing;

/// Seeds tried before the array grows.
const PATIENCE: u64 = 8;

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
        let layout = Layout::for_attempt(keys.len() as u64, params.arity, seed, attempt);
        if peeling.peel::<N>(&layout, &mut keys)? {
            let cells = assign::<N>(&layout, &keys, &peeling.places, params.width)?;
            return Ok((layout, cells, keys.len() as u64));
        }
        attempt += 1;
    }
}

impl Layout {
    fn for_attempt(len: u64, arity: Arity, seed: u64, attempt: u64) -> Self {
        let cells_of_a_key = arity.cells();
        let segment_length = sizing::fuse_segment_length(cells_of_a_key, len);
        if len == 0 {
            return Self { seed, segment_length, segment_count: 0, arity };
        }
        let cells = (len as f64 * sizing::fuse_size_factor(cells_of_a_key, len)).ceil() as u64;
        let segments = cells.div_ceil(segment_length);
        let least = segments.saturating_sub(u64::from(cells_of_a_key) - 1).max(1);
        let segment_count = least + attempt / PATIENCE * (segments / GROWTH).max(1);
        Self { seed, segment_length, segment_count, arity }
    }
}

/// The hashes mixed with the seed, in order, each once. Mixing is a bijection, so distinct ones stay distinct.
fn sorted_distinct(hashes: &[u64], seed: u64, keys: &mut Vec<u64>) -> Result<(), ParamError> {
    keys.clear();
    reserve(keys, hashes.len() as u64)?;
    keys.extend(hashes.iter().map(|hash| mix64(hash.wrapping_add(seed))));
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
        let cells = layout.cells().unwrap_or(u64::MAX);
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
    let mut packed = Packed::zeroed(layout.cells().unwrap_or(u64::MAX), width)?;
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
