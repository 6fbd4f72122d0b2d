//! The limit set by memory: one random 64-byte line per key, with or without prefetching.
//!
//! The array is as large as the blocked filter for the same number of keys, also on huge pages. No filter that reads
//! one line per key out of cache can be faster; the distance of a batch or a single lookup from this is what is left to
//! gain.

#![expect(unsafe_code, reason = "the prefetch instruction has no safe form")]

use std::hint::black_box;

use ironbloom::BlockedBloomParams;
use ironbloom::hash::fastrange;
use memmap2::MmapMut;

use crate::contender::{ByHash, Contender, Hashed, Make, RATE, Side, Spec};

type Line = [u64; 8];

/// The yardsticks: several prefetch distances are tried, and the best counts.
pub(crate) fn all() -> Vec<Spec> {
    let lines = |name, make| Spec { name, side: Side::Yardstick, batches: true, make };
    vec![
        lines("line reads, 16 ahead", Make::Lines(Lines::<16>::make)),
        lines("line reads, 32 ahead", Make::Lines(Lines::<32>::make)),
        lines("line reads, 64 ahead", Make::Lines(Lines::<64>::make)),
    ]
}

/// An array of lines, read with a prefetch this many keys ahead.
struct Lines<const AHEAD: usize> {
    map: MmapMut,
}

impl<const AHEAD: usize> Lines<AHEAD> {
    fn make(n: u64) -> Box<dyn Contender> {
        let bits = BlockedBloomParams::for_rate(n, RATE).expect("a filter that we measure").bits();
        let bytes = (bits / 8).next_multiple_of(64) as usize;
        let mut map = MmapMut::map_anon(bytes).expect("memory for the yardstick");
        #[cfg(target_os = "linux")]
        // Without huge pages both the yardstick and the filter are slower: nothing to handle.
        let _ = map.advise(memmap2::Advice::HugePage);
        // Pages never written all map to one page of zeros, which would stay in cache.
        map.fill(0x55);
        Box::new(Hashed(Self { map }))
    }

    #[inline]
    fn line(lines: &[Line], hash: u64) -> &Line {
        &lines[fastrange(hash, lines.len() as u64) as usize]
    }
}

impl<const AHEAD: usize> ByHash for Lines<AHEAD> {
    fn contains_hash(&self, hash: u64) -> bool {
        read(Self::line(bytemuck::cast_slice(&self.map), hash))
    }

    fn size_in_bytes(&self) -> usize {
        self.map.len()
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        let lines: &[Line] = bytemuck::cast_slice(&self.map);
        for &hash in hashes.iter().take(AHEAD) {
            prefetch(Self::line(lines, hash));
        }
        for (i, (&hash, found)) in hashes.iter().zip(found).enumerate() {
            if let Some(&ahead) = hashes.get(i + AHEAD) {
                prefetch(Self::line(lines, ahead));
            }
            *found = read(Self::line(lines, hash));
        }
    }
}

/// Reads the whole line.
#[inline]
fn read(line: &Line) -> bool {
    black_box(line.iter().fold(u64::MAX, |all, word| all & word)) == 0
}

#[inline]
fn prefetch(line: &Line) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and cannot fault, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(line).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    black_box(line);
}
