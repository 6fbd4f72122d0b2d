//! Four nibbles in twelve bits: a bucket is a set, so the order of its entries does not have to be stored.
//!
//! ```text
//! four nibbles in order       16^4     = 65536 cases     16 bits
//! the same, order forgotten   C(19, 4) =  3876 cases     12 bits (3876 <= 4096)        [FAKM14, section 5.2]
//! ```
//!
//! Sorted nibbles a <= b <= c <= d are the strictly rising numbers a, b+1, c+2, d+3 below 19, and those are numbered
//! without gaps by the combinatorial number system:
//!
//! ```text
//! rank = C(a, 1) + C(b+1, 2) + C(c+2, 3) + C(d+3, 4)        four zeros: 0, four fifteens: 3875
//! ```
//!
//! The inverse is a table of 8 KiB, computed at compile time from the same formula.

/// Bits of a code.
pub(super) const CODE_BITS: u32 = 12;

/// Number of multisets of four nibbles. No filter writes codes from here on.
pub(super) const CODES: usize = 3876;

const TABLE: [u16; 1 << CODE_BITS] = table();

/// Returns the code of four nibbles in rising order.
#[inline]
pub(super) const fn rank(sorted: [u32; 4]) -> u32 {
    let [a, b, c, d] = sorted;
    let pairs = (b + 1) * b / 2;
    let triples = (c + 2) * (c + 1) * c / 6;
    let quadruples = (d + 3) * (d + 2) * (d + 1) * d / 24;
    a + pairs + triples + quadruples
}

/// Returns the nibbles of a code, in rising order; for a code that no filter writes, those of the last one.
#[inline]
pub(super) fn unrank(code: u32) -> [u32; 4] {
    let nibbles = u32::from(TABLE[code as usize % TABLE.len()]);
    [nibbles & 15, nibbles >> 4 & 15, nibbles >> 8 & 15, nibbles >> 12]
}

const fn table() -> [u16; 1 << CODE_BITS] {
    let mut table = [u16::MAX; 1 << CODE_BITS];
    let mut nibbles = 0u32;
    while nibbles <= u16::MAX as u32 {
        let [a, b, c, d] = [nibbles & 15, nibbles >> 4 & 15, nibbles >> 8 & 15, nibbles >> 12];
        if a <= b && b <= c && c <= d {
            table[rank([a, b, c, d]) as usize] = nibbles as u16;
        }
        nibbles += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_multiset_of_four_nibbles_has_a_code_of_its_own() {
        let mut codes = Vec::new();
        for d in 0..16 {
            for c in 0..=d {
                for b in 0..=c {
                    for a in 0..=b {
                        let code = rank([a, b, c, d]);
                        assert_eq!(unrank(code), [a, b, c, d]);
                        codes.push(code);
                    }
                }
            }
        }
        assert_eq!(codes, (0..CODES as u32).collect::<Vec<_>>());
    }

    #[test]
    fn a_code_that_no_filter_writes_reads_as_the_last_one() {
        assert!((CODES as u32..1 << CODE_BITS).all(|code| unrank(code) == [15; 4]));
    }
}
