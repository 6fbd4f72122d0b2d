//! Multi-attribute filters: finds rows that have *these values together*.
//!
//! ```text
//! rows   (large, red), (small, green)              query: (large, green)?
//!
//! ParallelBloom   one filter per attribute:        large is known, green is known:  yes   (wrong)
//! VerifiedBloom   and a sum over the row's hashes: no row has this sum:             no
//! Joint           one fingerprint of the row:      no row has this fingerprint:     no
//! ```
//!
//! A row has one value, a byte string, for each attribute; the same row may be inserted several times and stays until
//! it has been removed as often. All three are used through one trait, [`MultiFilter`].
//!
//! Use [`Joint`]. The others are from the literature (Xiao & Hua 2010), kept for comparison:
//! `ironbloom demo attributes` prints the difference. [`ParallelBloom`] says yes to every row whose values are all
//! known, whatever its size. [`VerifiedBloom`] fixes that in part, at several times the bits of a joint filter, and its
//! error does not fall as it grows ([`crate::sizing::sum_rate`]).
//!
//! | file | what |
//! |---|---|
//! | `attributes` | names, and a hash with its own seed for each |
//! | `parallel` | PBF: p attributes × q hash functions |
//! | `verified` | PBF-HT and PBF-BF |
//! | `joint` | ours |
//! | `counters` | counters that do not stick on popular values |
//! | `tally` | a multiset of numbers, under all of them |
//! | `kind` | both among the kinds of filter |
//! | `head` | the beginning of multi-attribute files |

mod attributes;
mod counters;
mod head;
mod joint;
mod kind;
mod parallel;
mod tally;
mod verified;

pub use attributes::{Attributes, MAX_ATTRIBUTES};
pub use joint::Joint;
pub(super) use kind::{JOINT_PLANS, PARALLEL_PLANS};
pub use parallel::ParallelBloom;
pub use verified::{Check, VerifiedBloom, Weights};

use crate::error::RowError;
use crate::hash::{Key, KeyTypes};

/// A filter whose keys are rows with several attributes.
///
/// ```
/// use ironbloom::multi::{Joint, MultiFilter};
/// let mut tables = Joint::with_rate(1000, 0.001, ["size", "color"])?;
/// tables.insert(&["large", "red"])?;
/// tables.insert(&["small", "green"])?;
/// assert!(tables.contains(&[Some("large"), Some("red")])?);       // certain
/// assert!(!tables.contains(&[Some("large"), Some("green")])?);    // wrong once in a thousand
/// assert!(tables.remove(&["large", "red"])?);
/// assert!(!tables.contains(&[Some("large"), Some("red")])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Remove only rows that were inserted: a false positive cannot be distinguished from a row that was inserted, and removing it
/// removes the trace of another row.
pub trait MultiFilter {
    /// The attributes of a row.
    fn attributes(&self) -> &Attributes;

    #[doc(hidden)]
    fn attributes_mut(&mut self) -> &mut Attributes;

    /// Notes the types of the values of rows whose hashes are inserted next, a set for each attribute: see
    /// [`KeyTypes`](crate::KeyTypes).
    fn note_keys(&mut self, types: &[KeyTypes]) {
        let len = self.len();
        self.attributes_mut().note(types, len);
    }

    /// Inserts a row whose values are of these types, like [`insert_hashed`](Self::insert_hashed).
    fn insert_hashed_of(&mut self, types: &[KeyTypes], row: &[u64]) -> Result<(), RowError> {
        if !self.attributes().lacks(types) {
            return self.insert_hashed(row);
        }
        let held = self.attributes().held().to_vec();
        self.note_keys(types);
        self.insert_hashed(row).inspect_err(|_| self.attributes_mut().set_held(&held))
    }

    /// Inserts a row by the [uniform](crate::hash#uniform-hashes) hashes of its values, again if it is already present.
    /// Fails, changing nothing, if the number of values is wrong or there is no room.
    fn insert_hashed(&mut self, row: &[u64]) -> Result<(), RowError>;

    /// Returns true if there might be a row with these [uniform](crate::hash#uniform-hashes) hashes. `None` stands for
    /// any value. `false` is certain.
    fn contains_hashed(&self, query: &[Option<u64>]) -> Result<bool, RowError>;

    /// Removes a row that was inserted, once, by the [uniform](crate::hash#uniform-hashes) hashes of its values.
    /// Returns false, changing nothing, if it is certainly absent.
    ///
    /// Removing a row that was never inserted makes others disappear if it looks present: see [`remove`](Self::remove).
    fn remove_hashed(&mut self, row: &[u64]) -> Result<bool, RowError>;

    /// Number of rows: inserts minus removals.
    fn len(&self) -> u64;

    /// True if no row was counted.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size in bytes: in memory, or in the file if it is mapped.
    fn size_in_bytes(&self) -> usize;

    /// Inserts a row, again if it is already present.
    fn insert<A: Key>(&mut self, row: &[A]) -> Result<(), RowError>
    where
        Self: Sized,
    {
        let (len, held) = (self.len(), self.attributes().held().to_vec());
        let hashes = self.attributes_mut().hash_new(row, len)?;
        self.insert_hashed(&hashes).inspect_err(|_| self.attributes_mut().set_held(&held))
    }

    /// Returns true if there might be a row with these values. `None` stands for any value. `false` is certain.
    fn contains<A: Key>(&self, query: &[Option<A>]) -> Result<bool, RowError>
    where
        Self: Sized,
    {
        self.contains_hashed(&self.attributes().hash_query(query)?)
    }

    /// Removes a row that was inserted, once. Returns false, changing nothing, if it is certainly absent.
    ///
    /// **Removing a row that was never inserted makes others disappear** if it looks present: the trace of another row
    /// is removed, and that row is then reported absent. No filter can detect this; [`removal`](crate::removal)
    /// estimates how much of a list that would affect, before you remove it.
    fn remove<A: Key>(&mut self, row: &[A]) -> Result<bool, RowError>
    where
        Self: Sized,
    {
        let hashes = self.attributes().hash_row(row)?;
        self.remove_hashed(&hashes)
    }
}

/// Returns the query for exactly this row.
fn as_query(row: &[u64]) -> Vec<Option<u64>> {
    row.iter().copied().map(Some).collect()
}
