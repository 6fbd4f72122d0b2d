//! A multiset of numbers: counts how often each occurs.
//!
//! ```text
//! keys    | · | 17 | 4 | · | 99 | · |        numbers of w bits, side by side
//! counts  | · |  3 | 1 | · | 20 | · |        0: the slot is empty
//! ```
//!
//! One table serves four purposes in this module: verification values of rows, copies of rows beyond the first, rows by
//! value of an attribute, and counts beyond a four-bit counter. A number is searched from its home slot on (linear
//! probing); a slot that becomes empty is filled by an entry that had been displaced past it, so there are no
//! tombstones.
//!
//! Counts start at four bits. If one needs more, all of them become twice as wide: no count ever sticks, and a table
//! without popular numbers stays small.

use crate::bits::packed::{MAX_WIDTH, Packed};
use crate::error::{DecodeError, ParamError, check_range};
use crate::format::native::{Image, Sections};
use crate::hash::{fastrange, mix64};

/// Slots of an empty table.
const FEWEST_SLOTS: u64 = 8;

/// Maximum number of slots: more than any machine can hold, while the number of their bits still fits 64 bits.
const MAX_SLOTS: u64 = 1 << 48;

/// Initial width of a count in bits.
const NARROWEST: u32 = 4;

/// Maximum number of entries in `slots` slots: four in five. Fewer would waste space, more would make searches long.
fn room(slots: u64) -> u64 {
    slots / 5 * 4 + slots % 5 * 4 / 5
}

/// See the module documentation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tally {
    keys: Packed,
    counts: Packed,
    slots: u64,
    /// Number of slots that are not empty.
    used: u64,
}

/// The result of a search.
enum Search {
    Found(u64),
    Free(u64),
    /// All slots hold other numbers.
    Nowhere,
}

impl Tally {
    /// Creates an empty table of numbers of `key_bits` bits, 1 to 64.
    pub(super) fn new(key_bits: u32) -> Result<Self, ParamError> {
        Self::of_slots(FEWEST_SLOTS, key_bits, NARROWEST)
    }

    /// Creates an empty table that takes `distinct` numbers before it grows.
    pub(super) fn with_room(key_bits: u32, distinct: u64) -> Result<Self, ParamError> {
        let slots = distinct.saturating_add(distinct / 4 + 1).max(FEWEST_SLOTS);
        Self::of_slots(slots, key_bits, NARROWEST)
    }

    fn of_slots(slots: u64, key_bits: u32, count_bits: u32) -> Result<Self, ParamError> {
        let keys = Packed::zeroed(slots, key_bits)?;
        Ok(Self { keys, counts: Packed::zeroed(slots, count_bits)?, slots, used: 0 })
    }

    /// Number of distinct numbers.
    pub(super) fn distinct(&self) -> u64 {
        self.used
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The distinct numbers, in no order.
    pub(super) fn keys(&self) -> impl Iterator<Item = u64> {
        let used = |&slot: &u64| self.counts.get(slot) != 0;
        (0..self.slots).filter(used).map(|slot| self.keys.get(slot))
    }

    /// Returns how often a number occurs.
    pub(super) fn count(&self, key: u64) -> u64 {
        match self.find(key) {
            Search::Found(slot) => self.counts.get(slot),
            _ => 0,
        }
    }

    /// Adds a number once. On error (allocation failed) nothing has changed.
    pub(super) fn add(&mut self, key: u64) -> Result<(), ParamError> {
        self.add_many(key, 1)
    }

    fn add_many(&mut self, key: u64, more: u64) -> Result<(), ParamError> {
        loop {
            match self.find(key) {
                Search::Found(slot) => {
                    let count = self.counts.get(slot).saturating_add(more);
                    if self.fits(count) {
                        self.counts.set(slot, count);
                        return Ok(());
                    }
                    self.rebuild(self.slots, 2 * self.counts.width())?;
                }
                Search::Free(slot) if self.used < room(self.slots) && self.fits(more) => {
                    self.keys.set(slot, key);
                    self.counts.set(slot, more);
                    self.used += 1;
                    return Ok(());
                }
                _ if !self.fits(more) => self.rebuild(self.slots, 2 * self.counts.width())?,
                _ => self.rebuild(self.slots + self.slots / 2, self.counts.width())?,
            }
        }
    }

    fn fits(&self, count: u64) -> bool {
        count <= u64::MAX >> (64 - self.counts.width())
    }

    /// Removes a number once. Returns false if it is absent.
    pub(super) fn remove(&mut self, key: u64) -> bool {
        let Search::Found(slot) = self.find(key) else { return false };
        match self.counts.get(slot) {
            1 => self.vacate(slot),
            count => self.counts.set(slot, count - 1),
        }
        true
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.counts.clear();
        self.used = 0;
    }

    fn find(&self, key: u64) -> Search {
        let mut slot = self.home(key);
        for _ in 0..self.slots {
            if self.counts.get(slot) == 0 {
                return Search::Free(slot);
            }
            if self.keys.get(slot) == key {
                return Search::Found(slot);
            }
            slot = self.after(slot);
        }
        Search::Nowhere
    }

    /// Returns the home slot. Numbers may be sums, which cluster around their mean, so they are mixed first.
    fn home(&self, key: u64) -> u64 {
        fastrange(mix64(key), self.slots)
    }

    fn after(&self, slot: u64) -> u64 {
        if slot + 1 == self.slots { 0 } else { slot + 1 }
    }

    /// Returns the distance forward from one slot to another.
    fn steps(&self, from: u64, to: u64) -> u64 {
        if from <= to { to - from } else { self.slots - from + to }
    }

    /// Empties a slot, and moves up entries after it that would no longer be found.
    fn vacate(&mut self, slot: u64) {
        let (mut hole, mut next) = (slot, self.after(slot));
        // There is always an empty slot: a fifth of them are.
        while self.counts.get(next) != 0 {
            let key = self.keys.get(next);
            if self.steps(self.home(key), next) >= self.steps(hole, next) {
                self.keys.set(hole, key);
                self.counts.set(hole, self.counts.get(next));
                hole = next;
            }
            next = self.after(next);
        }
        self.keys.set(hole, 0);
        self.counts.set(hole, 0);
        self.used -= 1;
    }

    /// Moves the numbers to a different number of slots, or to wider counts.
    fn rebuild(&mut self, slots: u64, count_bits: u32) -> Result<(), ParamError> {
        let mut other = Self::of_slots(slots, self.keys.width(), count_bits.min(MAX_WIDTH))?;
        for slot in (0..self.slots).filter(|&slot| self.counts.get(slot) != 0) {
            other.add_many(self.keys.get(slot), self.counts.get(slot))?;
        }
        *self = other;
        Ok(())
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        self.keys.words().size_in_bytes() + self.counts.words().size_in_bytes()
    }

    /// The shape as stored in a file: slots, bits of a number, bits of a count.
    pub(super) fn shape(&self) -> [u64; 3] {
        [self.slots, self.keys.width().into(), self.counts.width().into()]
    }

    /// Appends the two arrays to a file.
    pub(super) fn append_to<'a>(&'a self, image: Image<'a>) -> Image<'a> {
        image.section(self.keys.words()).section(self.counts.words())
    }

    /// Reads the next table of a file, of numbers of `wanted_key_bits` bits. Every number must be where a search would
    /// find it: otherwise the table would answer "absent".
    pub(super) fn decode(
        shape: [u64; 3],
        wanted_key_bits: u32,
        sections: &mut Sections,
    ) -> Result<Self, DecodeError> {
        let [slots, key_bits, count_bits] = shape;
        check_range("slots", slots, FEWEST_SLOTS, MAX_SLOTS)?;
        if key_bits != u64::from(wanted_key_bits) {
            return Err(DecodeError::Invalid { what: "bits of a number", value: key_bits });
        }
        let widths = [4, 8, 16, 32, 64];
        let count_bits = widths
            .into_iter()
            .find(|&width| u64::from(width) == count_bits)
            .ok_or(DecodeError::Invalid { what: "bits of a count", value: count_bits })?;
        let keys = sections.take_packed(slots, wanted_key_bits)?;
        let counts = sections.take_packed(slots, count_bits)?;
        let mut table = Self { keys, counts, slots, used: 0 };
        table.used = (0..slots).filter(|&slot| table.counts.get(slot) != 0).count() as u64;
        let wrong = |what, value| Err(DecodeError::Invalid { what, value });
        if table.used > room(slots) {
            return wrong("slots in use", table.used);
        }
        if let Some(slot) = table.misplaced() {
            return wrong("slot", slot);
        }
        Ok(table)
    }

    /// Finds a slot whose number a search would not find, or that is empty but has a number.
    fn misplaced(&self) -> Option<u64> {
        let empty = |slot: u64| self.counts.get(slot) == 0;
        let first_empty = (0..self.slots).find(|&slot| empty(slot))?;
        let mut run = 0; // slots in use without a gap before this one
        let mut slot = first_empty;
        for _ in 0..self.slots {
            let key = self.keys.get(slot);
            if empty(slot) {
                if key != 0 {
                    return Some(slot);
                }
                run = 0;
            } else {
                if self.steps(self.home(key), slot) > run {
                    return Some(slot);
                }
                run += 1;
            }
            slot = self.after(slot);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Kind;
    use crate::hash::HashFn;
    use crate::kernel::Words;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Rereads the file of a table, modified by `change` like an attacker.
    fn reread(
        table: &Tally,
        change: impl Fn(&mut [u64; 3], &mut Words),
    ) -> Result<Tally, DecodeError> {
        let image = Image::new(Kind::Joint, HashFn::default(), 0, 1);
        let image = table.append_to(image);
        let words: Vec<u64> = image.sections.iter().flat_map(|s| s.iter().copied()).collect();
        let mut payload = Words::zeroed(words.len() as u64 * 64).unwrap();
        payload.to_mut().copy_from_slice(&words);
        let mut shape = table.shape();
        change(&mut shape, &mut payload);
        let mut sections = Sections::new(payload);
        let table = Tally::decode(shape, table.keys.width(), &mut sections)?;
        sections.finish()?;
        Ok(table)
    }

    proptest! {
        /// Compared with an exact multiset: few numbers so that they collide, many operations so that the table grows
        /// and shrinks.
        #[test]
        fn it_counts_as_a_hash_map_does(
            operations in prop::collection::vec((any::<bool>(), 0u64..60), 0..600),
            key_bits in 6u32..=64,
        ) {
            let mut table = Tally::new(key_bits).unwrap();
            let mut model: HashMap<u64, u64> = HashMap::new();
            for (insert, key) in operations {
                if insert {
                    table.add(key).unwrap();
                    *model.entry(key).or_default() += 1;
                } else {
                    let count = model.get(&key).copied().unwrap_or(0);
                    prop_assert_eq!(table.remove(key), count > 0);
                    if count > 1 { model.insert(key, count - 1); } else { model.remove(&key); }
                }
                prop_assert_eq!(table.misplaced(), None);
            }
            for key in 0..60 {
                prop_assert_eq!(table.count(key), model.get(&key).copied().unwrap_or(0));
            }
            prop_assert_eq!(table.distinct(), model.len() as u64);
            prop_assert_eq!(reread(&table, |_, _| {}), Ok(table));
        }
    }

    #[test]
    fn no_count_is_too_large() {
        let mut table = Tally::new(8).unwrap();
        table.add(7).unwrap();
        for (times, bits) in [(15, 4), (16, 8), (255, 8), (256, 16), (65_536, 32)] {
            while table.count(200) < times {
                table.add(200).unwrap();
            }
            assert_eq!((table.count(200), table.counts.width()), (times, bits));
        }
        assert_eq!(table.count(7), 1);
        for _ in 0..65_536 {
            assert!(table.remove(200));
        }
        assert!(!table.remove(200) && table.count(7) == 1);
    }

    /// A count that only a file can have.
    #[test]
    fn a_forged_count_cannot_overflow() {
        let mut table = Tally::of_slots(8, 64, 64).unwrap();
        table.add_many(3, u64::MAX).unwrap();
        table.add(3).unwrap();
        assert_eq!(table.count(3), u64::MAX);
        assert!(table.remove(3));
    }

    #[test]
    fn a_table_with_room_does_not_grow() {
        for distinct in [0, 1, 7, 8, 100, 12_345] {
            let mut table = Tally::with_room(64, distinct).unwrap();
            let slots = table.slots;
            (0..distinct).for_each(|key| table.add(key).unwrap());
            assert_eq!((table.slots, table.distinct()), (slots, distinct));
            assert!(slots <= distinct + distinct / 4 + 8);
        }
    }

    #[test]
    fn a_file_whose_numbers_would_not_be_found_is_refused() {
        let mut table = Tally::new(16).unwrap();
        (0..100).for_each(|key| table.add(key * 97).unwrap());
        let key_words = table.keys.words().len();
        let mut refused = 0;
        for slot in (0..table.slots as usize).filter(|&slot| table.keys.get(slot as u64) != 0) {
            let emptied = reread(&table, |_, payload| {
                payload.to_mut()[key_words + slot / 16] &= !(15 << (slot % 16 * 4));
            });
            assert!(emptied.is_err(), "slot {slot} is empty and has a number");
            let changed = reread(&table, |_, payload| {
                payload.to_mut()[slot / 4] ^= 1 << (slot % 4 * 16 + 7);
            });
            refused += u64::from(changed.is_err());
        }
        // Another number belongs elsewhere, unless its home happens to be in the same run.
        assert!(refused > table.distinct() / 2, "{refused}");
        // Every count is above zero: no slot is left at which a search could end.
        let full = reread(&table, |_, payload| {
            let counts = &mut payload.to_mut()[key_words..];
            let words = table.slots as usize * 4 / 64;
            counts[..words].fill(0x1111_1111_1111_1111);
        });
        assert!(full.is_err());
        for (i, values) in [
            (0, [0, 7, 1 << 49, u64::MAX, table.slots + 64]),
            (1, [0, 15, 17, 64, u64::MAX]),
            (2, [0, 1, 5, 16, 65]),
        ] {
            for value in values {
                assert!(reread(&table, |shape, _| shape[i] = value).is_err(), "{i} {value}");
            }
        }
    }
}
