//! Bit arrays: addressing bits, counting and clearing ranges, and [`packed`] numbers of any width.
//!
//! The arrays themselves, owned or mapped, are [`Words`](crate::kernel::Words).

pub(crate) mod packed;

/// Returns word and mask of a bit.
#[inline]
pub(crate) fn address(position: u64) -> (usize, u64) {
    ((position / 64) as usize, 1 << (position % 64))
}

/// Counts the ones among the bits `start..end`.
pub(crate) fn count_ones_in(words: &[u64], start: u64, end: u64) -> u64 {
    if start >= end {
        return 0;
    }
    let (first, last) = ((start / 64) as usize, ((end - 1) / 64) as usize);
    let head = u64::MAX << (start % 64);
    let tail = u64::MAX >> (63 - (end - 1) % 64);
    if first == last {
        return u64::from((words[first] & head & tail).count_ones());
    }
    let middle: u64 = words[first + 1..last].iter().map(|w| u64::from(w.count_ones())).sum();
    middle + u64::from((words[first] & head).count_ones() + (words[last] & tail).count_ones())
}

/// Clears the bits `start..end`, at least one.
pub(crate) fn clear_bits(words: &mut [u64], start: u64, end: u64) {
    let (first, last) = ((start / 64) as usize, ((end - 1) / 64) as usize);
    let head = u64::MAX << (start % 64);
    let tail = u64::MAX >> (63 - (end - 1) % 64);
    if first == last {
        words[first] &= !(head & tail);
    } else {
        words[first] &= !head;
        words[first + 1..last].fill(0);
        words[last] &= !tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_are_counted_in_any_range() {
        let words = [u64::MAX, 0b1011, u64::MAX];
        for start in 0..192 {
            for end in start..=192 {
                let naive = (start..end).filter(|&i| words[i as usize / 64] >> (i % 64) & 1 == 1);
                assert_eq!(count_ones_in(&words, start, end), naive.count() as u64);
            }
        }
    }

    #[test]
    fn bits_are_cleared_in_any_range() {
        for start in 0..192 {
            for end in start + 1..=192 {
                let mut words = [u64::MAX; 3];
                clear_bits(&mut words, start, end);
                assert_eq!(count_ones_in(&words, start, end), 0);
                assert_eq!(count_ones_in(&words, 0, 192), 192 - (end - start));
            }
        }
    }
}
