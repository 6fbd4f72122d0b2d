//! Counting ones, alone and while merging one array into another.
//!
//! Plain Rust, also compiled for processors that count the ones of a word, or of a whole line, with one instruction:
//! portable programs cannot assume it.

use super::pages::is_zero;

/// Bytes merged before their ones are counted: a page, which is then still in the nearest cache.
const NEAR_BYTES: usize = 4 << 10;

#[inline(always)]
fn ones(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let rest: u64 = rest.iter().map(|byte| u64::from(byte.count_ones())).sum();
    rest + words.iter().map(|word| u64::from(u64::from_le_bytes(*word).count_ones())).sum::<u64>()
}

#[inline(always)]
fn or_ones(one: &mut [u8], other: &[u8]) -> u64 {
    let mut count = 0;
    for (one, other) in one.chunks_mut(NEAR_BYTES).zip(other.chunks(NEAR_BYTES)) {
        // Skipping zeros keeps untouched pages from taking memory.
        if !is_zero(other) {
            one.iter_mut().zip(other).for_each(|(one, other)| *one |= other);
        }
        count += ones(one);
    }
    count
}

/// Defines both functions for the processor at hand.
macro_rules! for_processor {
    ($(#[$doc:meta])* $name:ident => $plain:ident($($arg:ident: $type:ty),*)) => {
        $(#[$doc])*
        pub(crate) fn $name($($arg: $type),*) -> u64 {
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            {
                #[target_feature(enable = "avx512f,avx512vpopcntdq")]
                unsafe fn wide($($arg: $type),*) -> u64 {
                    $plain($($arg),*)
                }

                #[target_feature(enable = "popcnt")]
                unsafe fn narrow($($arg: $type),*) -> u64 {
                    $plain($($arg),*)
                }

                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq") {
                    // SAFETY: the processor has these instructions; the code is plain Rust.
                    return unsafe { wide($($arg),*) };
                }
                if is_x86_feature_detected!("popcnt") {
                    // SAFETY: as above.
                    return unsafe { narrow($($arg),*) };
                }
            }
            $plain($($arg),*)
        }
    };
}

for_processor! {
    /// Number of ones.
    count_ones => ones(bytes: &[u8])
}

for_processor! {
    /// Sets the bits of another array of the same length, and counts the ones of the result.
    or_counting => or_ones(one: &mut [u8], other: &[u8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_of_a_union_are_those_of_the_definition() {
        for len in [0, 1, 7, 8, 63, 1000, NEAR_BYTES, 3 * NEAR_BYTES + 5] {
            let one: Vec<u8> = (0..len).map(|i| ((i * 151) >> 3) as u8).collect();
            let other: Vec<u8> = (0..len).map(|i| ((i * 77) >> 2) as u8).collect();
            let union: Vec<u8> = one.iter().zip(&other).map(|(a, b)| a | b).collect();
            let naive = union.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
            let mut both = one.clone();
            assert_eq!(or_counting(&mut both, &other), naive, "{len} bytes");
            assert_eq!(both, union);
            assert_eq!((count_ones(&both), ones(&both)), (naive, naive));
        }
    }
}
