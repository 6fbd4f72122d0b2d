//! Filters of rows: a payload of names and tables, which noise never is. So a real file is changed here and there.

use arbitrary::Arbitrary;
use ironbloom::hash::mix64;
use ironbloom::multi::{Attributes, MultiFilter};
use ironbloom::{HashFn, ParamError, Persist};

use crate::{HEADER_BYTES, Number, seal, some_hashes};

/// First byte of a file that is worth changing: behind it are kind, counts and parameters, then the payload.
const FIRST: usize = 16;

/// What goes into a filter of rows, and what is then changed in its file.
#[derive(Arbitrary, Debug)]
pub struct EditedRows {
    capacity: u8,
    attributes: u8,
    seed: u64,
    rows: Vec<u8>,
    edits: Vec<(u16, Number)>,
}

impl EditedRows {
    /// What the changed file holds, and that file; `None` if it is refused.
    pub fn decode<F: MultiFilter + Persist>(
        &self,
        make: impl Fn(u64, Attributes) -> Result<F, ParamError>,
    ) -> Option<(F, Vec<u8>)> {
        let names = (0..self.attributes % 5).map(|i| format!("attribute {i}"));
        let attributes = Attributes::new(names, HashFn::Xxh3 { seed: self.seed }).ok()?;
        let count = attributes.len();
        let mut filter = make(self.capacity.into(), attributes).ok()?;
        for &row in &self.rows {
            let _ = filter.insert_hashed(&some_row(row.into(), count));
        }
        let mut file = filter.to_bytes();
        let words = (file.len() - FIRST) / 8;
        for &(word, value) in &self.edits {
            let at = FIRST + usize::from(word) % words * 8;
            file[at..at + 8].copy_from_slice(&value.word().to_le_bytes());
        }
        debug_assert!(file.len() > HEADER_BYTES);
        seal(&mut file);
        Some((F::from_bytes(&file).ok()?, file))
    }
}

/// A row whose first values are popular.
fn some_row(number: u64, attributes: usize) -> Vec<u64> {
    (0..attributes as u64)
        .map(|i| mix64(i << 32 | number >> (4 * (attributes as u64 - 1 - i))))
        .collect()
}

/// A row that was just inserted is there and can be removed, whatever the file said; what is refused changes nothing.
pub fn exercise_rows<F: MultiFilter + Clone + PartialEq + std::fmt::Debug>(filter: &mut F) {
    let count = filter.attributes().len();
    let before = filter.clone();
    assert!(filter.insert_hashed(&vec![0; count + 1]).is_err());
    assert_eq!(filter, &before, "a refused row changes something");
    for hash in some_hashes() {
        let row = some_row(hash, count);
        let query: Vec<Option<u64>> = row.iter().copied().map(Some).collect();
        let before = filter.clone();
        if filter.insert_hashed(&row).is_err() {
            assert_eq!(filter, &before, "a refused row changes something");
            continue;
        }
        assert!(filter.contains_hashed(&query).unwrap(), "a row just inserted is not there");
        for i in 0..count {
            let mut one = vec![None; count];
            one[i] = query[i];
            assert!(
                filter.contains_hashed(&one).unwrap_or(true),
                "a value just inserted is not there"
            );
        }
        assert!(filter.remove_hashed(&row).unwrap(), "a row just inserted cannot be removed");
        let there = filter.contains_hashed(&query).unwrap();
        assert!(there || !filter.remove_hashed(&row).unwrap(), "an absent row was removed");
    }
}
