//! The parallel Bloom filter, PBF (Xiao & Hua 2010): one filter for each attribute, side by side.
//!
//! ```text
//!              H_i1          H_i2               H_iq
//! size     [ ···m··· ]   [ ···m··· ]  …  [ ···m··· ]        counters; a value has one in each slice
//! color    [ ···m··· ]   [ ···m··· ]  …  [ ···m··· ]
//!
//! insert(row):     count up the q counters of each value
//! contains(query): are all counters of all values asked for above 0?
//! remove(row):     contains(row)?  then count them down
//! ```
//!
//! It knows which values exist, not which belong together: after (large, red) and (small, green) it always says yes to
//! (large, green), whatever its size. Its strength is that it answers for any subset of the attributes.
//!
//! With bits alone nothing could be removed, so the paper uses counters. A four-bit counter would stick on popular
//! values, so these have a surplus in addition (`counters`).

use super::attributes::Attributes;
use super::counters::Counters;
use super::{MultiFilter, as_query, head};
use crate::error::{DecodeError, ParamError, RowError};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist, Sections};
use crate::hash::{HashFn, expect_uniform};
use crate::kinds::bloom::{BloomLayout, BloomParams};

/// A filter for each attribute: answers for any subset of them, and mixes up rows.
///
/// ```
/// use ironbloom::multi::{MultiFilter, ParallelBloom};
/// let mut tables = ParallelBloom::with_rate(1000, 0.01, ["size", "color"])?;
/// tables.insert(&["large", "red"])?;
/// tables.insert(&["small", "green"])?;
/// assert!(tables.contains(&[Some("large"), None])?);              // any large one?
/// assert!(tables.contains(&[Some("large"), Some("green")])?);     // wrong, and always so
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ParallelBloom {
    attributes: Attributes,
    params: BloomParams,
    /// The counters of each attribute.
    counters: Vec<Counters>,
    len: u64,
}

impl ParallelBloom {
    /// Creates an empty filter with counters of this shape for each attribute, in slices (a flat shape is cut into
    /// slices). Fails only if allocation fails.
    pub fn new(params: BloomParams, attributes: Attributes) -> Result<Self, ParamError> {
        let params = params.segmented();
        let counters = (0..attributes.len()).map(|_| Counters::new(params));
        let counters = counters.collect::<Result<_, _>>()?;
        Ok(Self { attributes, params, counters, len: 0 })
    }

    /// Creates an empty filter for `capacity` distinct values of each attribute that mistakes an unknown value for a
    /// known one at `rate`. That is not the rate of wrong *rows*: see the module documentation.
    pub fn with_rate<S: Into<String>>(
        capacity: u64,
        rate: f64,
        names: impl IntoIterator<Item = S>,
    ) -> Result<Self, ParamError> {
        let params = BloomParams::segmented_for_rate(capacity, rate)?;
        Self::new(params, Attributes::new(names, HashFn::default())?)
    }

    /// The shape of one attribute; its bits are the counters.
    pub fn params(&self) -> BloomParams {
        self.params
    }

    /// The rate at which a row of unknown values is mistaken for a known one, from the counters in use. A row of known
    /// values always is.
    pub fn estimate_rate(&self) -> f64 {
        let of_one = |counters: &Counters| counters.fill().powi(self.params.probes() as i32);
        self.counters.iter().map(of_one).product()
    }

    /// Number of counters, over all attributes, that exceed 15 and therefore have a surplus.
    pub fn surpluses(&self) -> u64 {
        self.counters.iter().map(Counters::surpluses).sum()
    }

    /// Numbers of distinct values of each attribute, estimated from the counters in use.
    pub fn estimate_values(&self) -> impl Iterator<Item = f64> {
        self.counters.iter().map(Counters::estimate_distinct)
    }

    /// True if an attribute appears to have significantly more distinct values than planned: its rate is no longer met.
    /// The number of rows does not matter.
    pub fn is_over_capacity(&self) -> bool {
        self.counters.iter().any(Counters::is_over_capacity)
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.counters.iter_mut().for_each(Counters::clear);
        self.attributes.forget_types();
        self.len = 0;
    }
}

impl MultiFilter for ParallelBloom {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn attributes_mut(&mut self) -> &mut Attributes {
        &mut self.attributes
    }

    fn insert_hashed(&mut self, row: &[u64]) -> Result<(), RowError> {
        self.attributes.check_len(row.len())?;
        expect_uniform(row);
        for (i, &hash) in row.iter().enumerate() {
            if let Err(error) = self.counters[i].insert(hash) {
                for (counters, &hash) in self.counters.iter_mut().zip(&row[..i]) {
                    counters.remove(hash);
                }
                return Err(error.into());
            }
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    fn contains_hashed(&self, query: &[Option<u64>]) -> Result<bool, RowError> {
        self.attributes.check_len(query.len())?;
        let has = |(counters, hash): (&Counters, &Option<u64>)| {
            hash.is_none_or(|hash| counters.contains(hash))
        };
        Ok(self.counters.iter().zip(query).all(has))
    }

    fn remove_hashed(&mut self, row: &[u64]) -> Result<bool, RowError> {
        if !self.contains_hashed(&as_query(row))? {
            return Ok(false);
        }
        for (counters, &hash) in self.counters.iter_mut().zip(row) {
            counters.remove(hash);
        }
        self.len = self.len.saturating_sub(1); // a file's count cannot be trusted
        Ok(true)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.counters.iter().map(Counters::size_in_bytes).sum()
    }
}

/// The parameters are those of a counting filter, then the numbers of attributes and of lines of names. The payload is
/// the head (`head`), then for each attribute its counters and its surplus.
impl Persist for ParallelBloom {
    fn encode(&self) -> Image<'_> {
        let hash_fn = self.attributes.hash_fn();
        let (types, words) = self.attributes.encode_types();
        let params = [&self.params.encode()[..], &head::params(&self.attributes), &words].concat();
        let image = Image::new(Kind::Parallel, hash_fn, self.len, self.params.capacity());
        let shapes = self.counters.iter().map(Counters::shape);
        let image = head::append_to(image.of_keys(types).params(&params), &self.attributes, shapes);
        self.counters.iter().fold(image, |image, counters| counters.append_to(image))
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        let header = parts.expect_kind(Kind::Parallel)?;
        let (hash_fn, len) = (header.hash_fn, header.len);
        let types = header.key_types;
        let [bits, probes, form, scheme, count, lines, low, high] = header.first_params()?;
        let params = BloomParams::decode([bits, probes, form, scheme], header.capacity)?;
        if params.layout() != BloomLayout::Segmented {
            return Err(DecodeError::Invalid { what: "form", value: form });
        }
        let mut sections = Sections::new(parts.words);
        let attributes = head::take_attributes([count, lines], hash_fn, &mut sections)?;
        let attributes = attributes.with_types(types, [low, high], len)?;
        let shapes = head::take_shapes(attributes.len(), &mut sections)?;
        let counters =
            shapes.into_iter().map(|shape| Counters::decode(params, shape, &mut sections));
        let counters = counters.collect::<Result<_, _>>()?;
        sections.finish()?;
        Ok(Self { attributes, params, counters, len })
    }
}
