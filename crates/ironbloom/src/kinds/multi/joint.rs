//! Our own design: one fingerprint of the whole row, in a cuckoo filter.
//!
//! ```text
//! h_i = hash of value i, with the seed of attribute i
//! J   = fold:  s ← mix64(s · C ⊕ h_i)             the order counts: (x, y) is not (y, x)
//!
//! rows     cuckoo filter over J                   every row once
//! copies   J → extra copies                       a table, empty unless rows repeat
//! values   h_i → rows with it, for each i         tables, only if partial queries are asked for
//! ```
//!
//! The rate is that of the cuckoo filter for *every* wrong row: with known values, swapped values or unknown ones. An
//! additional filter of the values would not improve that. Values are needed only for queries that leave out
//! attributes, and then as a table of counts, because popular values must neither be inserted nine times into a cuckoo
//! filter nor make counters stick. Such a query is answered attribute by attribute, so among the attributes it names it
//! mixes up rows like a [`ParallelBloom`](super::ParallelBloom).
//!
//! **Copies.** A cuckoo filter holds one key at most eight times. Here the second insert of a row goes to the table,
//! under J itself, and so does the first insert of a row that is a false positive (a fraction of the rows as small as
//! the rate). A removal takes from the table first. So a row is never in the table more often than it was inserted, and
//! each of its inserts that is not in the table has a fingerprint in the cuckoo filter: nothing is lost, in whatever
//! order rows are inserted and removed.

use super::attributes::Attributes;
use super::tally::Tally;
use super::{MultiFilter, as_query, head};
use crate::error::{DecodeError, ParamError, RowError, check_range};
use crate::format::Kind;
use crate::format::native::{Header, Image, Parts, Persist, Sections};
use crate::hash::{HashFn, expect_uniform, mix64, remix};
use crate::kernel::LINE_WORDS;
use crate::kinds::cuckoo::{Cuckoo, CuckooParams};

/// Initial value of the fold: the first 64 bits of the fraction of pi.
const START: u64 = 0x243f_6a88_85a3_08d3;

/// Numbers in the table of copies are joint hashes.
const COPY_BITS: u32 = u64::BITS;

/// Minimum number of bits kept of a value's hash.
const FEWEST_VALUE_BITS: u32 = 8;

/// Combines the hashes of a row's values.
fn joint(row: impl IntoIterator<Item = u64>) -> u64 {
    row.into_iter().fold(START, |s, hash| mix64(remix(s) ^ hash))
}

/// Answers whether there is a row with these values together. 13.8 bits per row for 0.1 %, whatever the number of
/// attributes.
///
/// ```
/// use ironbloom::multi::{Joint, MultiFilter};
/// let mut tables = Joint::partial_with_rate(1000, 0.001, ["size", "color"])?;
/// tables.insert(&["large", "red"])?;
/// tables.insert(&["small", "green"])?;
/// assert!(!tables.contains(&[Some("large"), Some("green")])?);    // wrong once in a thousand
/// assert!(tables.contains(&[None, Some("green")])?);              // any green one?
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    attributes: Attributes,
    rows: Cuckoo,
    copies: Tally,
    values: Option<Values>,
    len: u64,
}

/// For each attribute, the number of rows per value, which is identified by this many bits of its hash.
#[derive(Clone, Debug, PartialEq)]
struct Values {
    bits: u32,
    tables: Vec<Tally>,
}

impl Values {
    fn new(attributes: usize, bits: u32) -> Result<Self, ParamError> {
        let tables = (0..attributes).map(|_| Tally::new(bits)).collect::<Result<_, _>>()?;
        Ok(Self { bits, tables })
    }

    fn key(&self, hash: u64) -> u64 {
        hash >> (u64::BITS - self.bits)
    }

    fn contains(&self, query: &[Option<u64>]) -> bool {
        let has = |(table, hash): (&Tally, &Option<u64>)| {
            hash.is_none_or(|hash| table.count(self.key(hash)) > 0)
        };
        self.tables.iter().zip(query).all(has)
    }

    fn insert(&mut self, row: &[u64]) -> Result<(), ParamError> {
        for (i, &hash) in row.iter().enumerate() {
            let key = self.key(hash);
            if let Err(error) = self.tables[i].add(key) {
                self.remove(&row[..i]);
                return Err(error);
            }
        }
        Ok(())
    }

    fn remove(&mut self, row: &[u64]) {
        for (i, &hash) in row.iter().enumerate() {
            let key = self.key(hash);
            self.tables[i].remove(key);
        }
    }
}

impl Joint {
    /// Creates an empty filter for queries that name all attributes. Fails only if allocation fails.
    pub fn new(params: CuckooParams, attributes: Attributes) -> Result<Self, ParamError> {
        let rows = Cuckoo::new(params, attributes.hash_fn())?;
        Ok(Self { attributes, rows, copies: Tally::new(COPY_BITS)?, values: None, len: 0 })
    }

    /// Creates an empty filter that also answers queries for any subset of the attributes. It keeps a count for each
    /// distinct value.
    pub fn new_partial(params: CuckooParams, attributes: Attributes) -> Result<Self, ParamError> {
        // Wide enough to keep the rate even if every row had its own value.
        let capacity = params.capacity();
        let wide = (capacity as f64 / params.rate_at(capacity)).log2().ceil() as u32;
        let values = Values::new(attributes.len(), wide.clamp(FEWEST_VALUE_BITS, u64::BITS))?;
        Ok(Self { values: Some(values), ..Self::new(params, attributes)? })
    }

    /// Creates an empty filter for `capacity` distinct rows at `rate`, for queries that name all attributes.
    pub fn with_rate<S: Into<String>>(
        capacity: u64,
        rate: f64,
        names: impl IntoIterator<Item = S>,
    ) -> Result<Self, ParamError> {
        let attributes = Attributes::new(names, HashFn::default())?;
        Self::new(CuckooParams::for_rate(capacity, rate)?, attributes)
    }

    /// Creates an empty filter for `capacity` distinct rows at `rate` that also answers queries for any subset of the
    /// attributes.
    pub fn partial_with_rate<S: Into<String>>(
        capacity: u64,
        rate: f64,
        names: impl IntoIterator<Item = S>,
    ) -> Result<Self, ParamError> {
        let attributes = Attributes::new(names, HashFn::default())?;
        Self::new_partial(CuckooParams::for_rate(capacity, rate)?, attributes)
    }

    /// Returns true if queries may leave out attributes.
    pub fn is_partial(&self) -> bool {
        self.values.is_some()
    }

    /// The shape of the cuckoo filter.
    pub fn params(&self) -> CuckooParams {
        self.rows.params()
    }

    /// The current rate for a query that names all attributes.
    pub fn estimate_rate(&self) -> f64 {
        self.rows.estimate_rate()
    }

    /// Number of distinct rows, from the slots in use.
    pub fn estimate_len(&self) -> f64 {
        self.rows.estimate_len()
    }

    /// Number of rows in the table of copies: those inserted more than once, and a few that looked as if they had been.
    pub fn copied(&self) -> u64 {
        self.copies.distinct()
    }

    /// Number of distinct values of attribute `i`, if partial queries are enabled. Two values with the same hash bits
    /// count as one.
    pub fn distinct_values(&self, i: usize) -> Option<u64> {
        Some(self.values.as_ref()?.tables.get(i)?.distinct())
    }

    /// True once more distinct rows were counted than planned: the requested rate is no longer met.
    pub fn is_over_capacity(&self) -> bool {
        self.rows.is_over_capacity()
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.copies.clear();
        self.values.iter_mut().flat_map(|v| &mut v.tables).for_each(Tally::clear);
        self.attributes.forget_types();
        self.len = 0;
    }

    fn contains_joint(&self, hash: u64) -> bool {
        self.rows.contains_hash(hash) || !self.copies.is_empty() && self.copies.count(hash) > 0
    }

    /// Inserts into the cuckoo filter the first time, then into the table.
    fn insert_joint(&mut self, hash: u64) -> Result<(), RowError> {
        if self.rows.contains_hash(hash) {
            self.copies.add(hash)?;
        } else {
            self.rows.insert_mixed(hash)?;
        }
        Ok(())
    }

    /// Removes from the table first, then from the cuckoo filter.
    fn remove_joint(&mut self, hash: u64) {
        if self.copies.is_empty() || !self.copies.remove(hash) {
            self.rows.remove_hash(hash);
        }
    }

    /// All tables, in the order of the file.
    fn tables(&self) -> impl Iterator<Item = &Tally> {
        let values = self.values.iter().flat_map(|values| &values.tables);
        std::iter::once(&self.copies).chain(values)
    }
}

impl MultiFilter for Joint {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn attributes_mut(&mut self) -> &mut Attributes {
        &mut self.attributes
    }

    fn insert_hashed(&mut self, row: &[u64]) -> Result<(), RowError> {
        self.attributes.check_len(row.len())?;
        expect_uniform(row);
        let hash = joint(row.iter().copied());
        self.insert_joint(hash)?;
        if let Some(values) = &mut self.values
            && let Err(error) = values.insert(row)
        {
            self.remove_joint(hash);
            return Err(error.into());
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    fn contains_hashed(&self, query: &[Option<u64>]) -> Result<bool, RowError> {
        let expected = self.attributes.len();
        self.attributes.check_len(query.len())?;
        let row: Option<Vec<u64>> = query.iter().copied().collect();
        if row.is_none() && self.values.is_none() {
            let given = query.iter().flatten().count();
            return Err(RowError::NotPartial { given, expected });
        }
        Ok(self.values.as_ref().is_none_or(|values| values.contains(query))
            && row.is_none_or(|row| self.contains_joint(joint(row))))
    }

    fn remove_hashed(&mut self, row: &[u64]) -> Result<bool, RowError> {
        if !self.contains_hashed(&as_query(row))? {
            return Ok(false);
        }
        self.remove_joint(joint(row.iter().copied()));
        if let Some(values) = &mut self.values {
            values.remove(row);
        }
        self.len = self.len.saturating_sub(1); // a file's count cannot be trusted
        Ok(true)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.rows.size_in_bytes() + self.tables().map(Tally::size_in_bytes).sum::<usize>()
    }
}

/// The parameters are those of a cuckoo filter, the numbers of attributes and of lines of names, the lines of the
/// cuckoo filter, the distinct rows it counted, and the bits kept of a value's hash (0: no partial queries). The
/// payload is the head (`head`), the cuckoo filter, the table of copies, and then, for partial queries, one table per
/// attribute.
impl Persist for Joint {
    fn encode(&self) -> Image<'_> {
        let rows = self.rows.encode();
        let [buckets, fingerprint_bits, layout] = std::array::from_fn(|i| rows.header.params[i]);
        let [count, lines] = head::params(&self.attributes);
        let row_lines = rows.header.payload_bytes / (8 * LINE_WORDS as u64);
        let value_bits = self.values.as_ref().map_or(0, |values| u64::from(values.bits));
        let (types, [low, high]) = self.attributes.encode_types();
        let params = [
            buckets,
            fingerprint_bits,
            layout,
            count,
            lines,
            row_lines,
            self.rows.len(),
            value_bits,
            low,
            high,
        ];
        let hash_fn = self.attributes.hash_fn();
        let image = Image::new(Kind::Joint, hash_fn, self.len, rows.header.capacity);
        let shapes = self.tables().map(Tally::shape);
        let image = head::append_to(image.of_keys(types).params(&params), &self.attributes, shapes);
        let image = rows.sections.into_iter().fold(image, Image::push);
        self.tables().fold(image, |image, table| table.append_to(image))
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        let header = parts.expect_kind(Kind::Joint)?;
        let (hash_fn, len, capacity) = (header.hash_fn, header.len, header.capacity);
        let types = header.key_types;
        let [
            buckets,
            fingerprint_bits,
            layout,
            count,
            lines,
            row_lines,
            distinct,
            value_bits,
            low,
            high,
        ] = header.first_params()?;
        let mut sections = Sections::new(parts.words);
        let attributes = head::take_attributes([count, lines], hash_fn, &mut sections)?;
        let attributes = attributes.with_types(types, [low, high], len)?;
        let value_tables = if value_bits == 0 { 0 } else { attributes.len() };
        let shapes = head::take_shapes(1 + value_tables, &mut sections)?;
        let cuckoo = Header::new(Kind::Cuckoo, hash_fn, distinct, capacity);
        let rows = Cuckoo::decode(Parts {
            header: cuckoo.with_params(&[buckets, fingerprint_bits, layout]),
            words: sections.take_lines(row_lines)?,
        })?;
        let copies = Tally::decode(shapes[0], COPY_BITS, &mut sections)?;
        let values = match value_bits {
            0 => None,
            bits => Some(decode_values(bits, &shapes[1..], &mut sections)?),
        };
        sections.finish()?;
        Ok(Self { attributes, rows, copies, values, len })
    }
}

fn decode_values(
    bits: u64,
    shapes: &[[u64; 3]],
    sections: &mut Sections,
) -> Result<Values, DecodeError> {
    check_range("bits of a value", bits, FEWEST_VALUE_BITS.into(), u64::BITS.into())?;
    let bits = bits as u32; // at most 64
    let tables = shapes.iter().map(|&shape| Tally::decode(shape, bits, sections));
    Ok(Values { bits, tables: tables.collect::<Result<_, _>>()? })
}
