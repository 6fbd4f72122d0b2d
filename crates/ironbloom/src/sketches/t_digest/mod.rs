//! The merging t-digest (Dunning and Ertl 2019): quantiles of numbers, exact at the ends and close in the middle.
//!
//! ```text
//! nodes   | merged, sorted: mean and weight …… | unmerged, as they came …… |
//! ```
//!
//! A number is a node of weight 1. When the buffer is full, and before every answer, all nodes are sorted, and neighbours that
//! are small enough together become one: near the median a node may stand for many numbers, at the ends for one only. If that
//! frees no place, because weights differ by more than a double can tell apart, the lightest neighbours become one: RedisBloom
//! refuses numbers then.
//!
//! Arithmetic and its order are those of RedisBloom 8's t-digest (t-digest-c), so that answers are equal to the bit.
//!
//! ```text
//! sort       the order of equal means decides bits: one way to sort, specified
//! answers    quantiles, ranks and means from nodes
//! ```

mod answers;
#[cfg(test)]
mod laws;
mod sort;

use std::f64::consts::PI;

use super::error::{MergeError, PlanError};
use super::file::Sketch;
use crate::redisbloom::error::DecodeError;
use crate::redisbloom::fields::{FieldReader, FieldWriter};
use crate::redisbloom::limits::MemoryLimit;

/// The compression that RedisBloom takes by default.
pub const DEFAULT_COMPRESSION: u64 = 100;

/// What RedisBloom has beside the nodes.
const FIXED_BYTES: u64 = 80;
const NODE_BYTES: u64 = 16;

/// How far a double is from a weight at most.
const MOST_ROUNDED: i128 = 512;

/// How far rounding moves a mean at most, as a share of the largest number: thousands of units in the last place.
const ROUNDING: f64 = 1e-12;

/// Most nodes of a digest.
const MAX_CAPACITY: u64 = i32::MAX as u64;

/// Numbers about one mean.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    mean: f64,
    weight: i64,
}

impl Node {
    /// This node and one that is not before it, as one. Its mean lies between theirs, whatever the rounding.
    fn joined(self, other: Self) -> Self {
        let weight = self.weight + other.weight;
        let step = (other.mean - self.mean) * other.weight as f64 / weight as f64;
        let mean = if step.is_finite() {
            self.mean + step
        } else {
            // Ends of the number line: their distance has no number, their mean has.
            let share = other.weight as f64 / weight as f64;
            self.mean * (1.0 - share) + other.mean * share
        };
        Self { mean: mean.clamp(self.mean, other.mean), weight }
    }
}

/// Quantiles of numbers.
///
/// ```
/// # use ironbloom::sketches::TDigest;
/// let mut times = TDigest::new(100)?;
/// for i in 0..10_000 {
///     times.add(f64::from(i), 1)?;
/// }
/// let median = times.quantile(0.5);
/// assert!((median - 5000.0).abs() < 100.0 && times.max() == 9999.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TDigest {
    compression: u64,
    min: f64,
    max: f64,
    /// The merged ones first.
    nodes: Vec<Node>,
    merged: usize,
    merged_weight: i64,
    unmerged_weight: i64,
    compressions: i64,
}

impl TDigest {
    /// An empty digest. The more compression, the more nodes and the smaller the error: about `6 · compression` nodes.
    ///
    /// # Errors
    ///
    /// If the compression is 0, or too many nodes would be needed.
    pub fn new(compression: u64) -> Result<Self, PlanError> {
        Self::limited(compression, MemoryLimit::NONE)
    }

    /// An empty digest, if the limit allows one that is full.
    ///
    /// # Errors
    ///
    /// If the compression is out of range, or the limit forbids it.
    pub fn limited(compression: u64, limit: MemoryLimit) -> Result<Self, PlanError> {
        PlanError::unless(compression > 0, "compression: it must be 1 or more")?;
        let capacity = capacity_of(compression);
        let bytes = capacity.saturating_mul(NODE_BYTES);
        if capacity > MAX_CAPACITY {
            return Err(PlanError::Memory { bytes });
        }
        limit.check(0, bytes)?;
        Ok(Self::empty(compression))
    }

    fn empty(compression: u64) -> Self {
        Self {
            compression,
            min: f64::MAX,
            max: -f64::MAX,
            nodes: Vec::new(),
            merged: 0,
            merged_weight: 0,
            unmerged_weight: 0,
            compressions: 0,
        }
    }

    /// Removes all numbers.
    pub fn reset(&mut self) {
        *self = Self::empty(self.compression);
    }

    /// The compression.
    pub fn compression(&self) -> u64 {
        self.compression
    }

    /// Most nodes that it can have.
    pub fn capacity(&self) -> u64 {
        capacity_of(self.compression)
    }

    /// Number of merged nodes.
    pub fn merged_nodes(&self) -> usize {
        self.merged
    }

    /// Number of nodes that are not merged yet.
    pub fn unmerged_nodes(&self) -> usize {
        self.nodes.len() - self.merged
    }

    /// Weight of the merged nodes.
    pub fn merged_weight(&self) -> i64 {
        self.merged_weight
    }

    /// Weight of the nodes that are not merged yet.
    pub fn unmerged_weight(&self) -> i64 {
        self.unmerged_weight
    }

    /// How often nodes were merged.
    pub fn compressions(&self) -> i64 {
        self.compressions
    }

    /// Weight of all numbers.
    pub fn weight(&self) -> i64 {
        self.merged_weight + self.unmerged_weight
    }

    /// Size in bytes as RedisBloom counts it: of a full digest.
    pub fn size_in_bytes(&self) -> u64 {
        FIXED_BYTES + NODE_BYTES * self.capacity()
    }

    /// Adds a number that counts `weight` times, or of 0 not at all.
    ///
    /// # Errors
    ///
    /// If the number is not finite, the weight is negative, or the sum of all weights would be above 2^63 - 1. Then nothing has
    /// changed.
    pub fn add(&mut self, number: f64, weight: i64) -> Result<(), MergeError> {
        if !number.is_finite() || weight < 0 {
            return Err(MergeError::Overflow);
        }
        self.weight().checked_add(weight).ok_or(MergeError::Overflow)?;
        if weight == 0 {
            return Ok(());
        }
        if self.nodes.len() as u64 >= self.capacity() - 1 {
            self.compress();
        }
        self.min = self.min.min(number);
        self.max = self.max.max(number);
        self.nodes.push(Node { mean: number, weight });
        self.unmerged_weight += weight;
        Ok(())
    }

    /// Adds numbers in their order.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and none was added.
    pub fn add_each(&mut self, numbers: &[f64]) -> Result<(), MergeError> {
        let weight = i64::try_from(numbers.len()).map_err(|_| MergeError::Overflow)?;
        let is_right = numbers.iter().all(|number| number.is_finite())
            && self.weight().checked_add(weight).is_some();
        if !is_right {
            return Err(MergeError::Overflow);
        }
        numbers.iter().try_for_each(|&number| self.add(number, 1))
    }

    /// Adds what another digest holds. Both merge their nodes.
    ///
    /// # Errors
    ///
    /// If the sum of all weights would be above 2^63 - 1. Then no number was added.
    pub fn merge(&mut self, other: &mut Self) -> Result<(), MergeError> {
        self.weight().checked_add(other.weight()).ok_or(MergeError::Overflow)?;
        self.compress();
        other.compress();
        other.nodes.iter().try_for_each(|node| self.add(node.mean, node.weight))
    }

    /// Merges nodes. All answers do this first, so that it never needs to be called.
    pub fn compress(&mut self) {
        if self.unmerged_nodes() == 0 {
            return;
        }
        self.merged_weight += self.unmerged_weight;
        self.unmerged_weight = 0;
        self.compressions = self.compressions.saturating_add(1);
        sort::sort(&mut self.nodes);
        let total = self.merged_weight as f64;
        if total > 1.0 {
            let normalizer = self.compression as f64 / (2.0 * PI * total * total.ln());
            merge_neighbours(&mut self.nodes, total, normalizer);
        }
        while self.nodes.len() as u64 >= self.capacity() {
            merge_lightest(&mut self.nodes);
        }
        self.merged = self.nodes.len();
    }

    /// The smallest number, NaN if there is none.
    pub fn min(&self) -> f64 {
        if self.nodes.is_empty() { f64::NAN } else { self.min }
    }

    /// The largest number, NaN if there is none.
    pub fn max(&self) -> f64 {
        if self.nodes.is_empty() { f64::NAN } else { self.max }
    }
}

fn capacity_of(compression: u64) -> u64 {
    compression.saturating_mul(6).saturating_add(10)
}

/// Makes one node of neighbours as long as it is small for where it stands.
fn merge_neighbours(nodes: &mut Vec<Node>, total: f64, normalizer: f64) {
    let mut current = 0;
    let mut before = 0.0;
    for i in 1..nodes.len() {
        let weight = nodes[i].weight;
        let proposed = nodes[current].weight as f64 + weight as f64;
        let size = proposed * normalizer;
        let (left, right) = (before / total, (before + proposed) / total);
        if size <= left * (1.0 - left) && size <= right * (1.0 - right) {
            nodes[current] = nodes[current].joined(nodes[i]);
        } else {
            before += nodes[current].weight as f64;
            current += 1;
            nodes[current] = nodes[i];
        }
    }
    nodes.truncate(current + 1);
}

/// Makes one node of the two neighbours that are lightest together, but for the first and the last node: numbers at the ends stay
/// exact. There are at least four nodes, since no digest has a smaller capacity.
fn merge_lightest(nodes: &mut Vec<Node>) {
    let inner = &nodes[1..nodes.len() - 1];
    let pairs = inner.windows(2).enumerate();
    let lightest =
        pairs.min_by_key(|(_, pair)| i128::from(pair[0].weight) + i128::from(pair[1].weight));
    if let Some((i, pair)) = lightest {
        nodes[i + 1] = pair[0].joined(pair[1]);
        nodes.remove(i + 2);
    }
}

/// Fields: compression, min, max (doubles); capacity, merged nodes, unmerged nodes (0), compressions; merged weight, unmerged
/// weight (doubles); the means, then the weights (doubles). It is written as it is once its nodes are merged.
impl Sketch for TDigest {
    const KIND: u32 = 3;
    const NAME: &'static str = "t-digest";

    fn encode(&self, to: &mut impl FieldWriter) {
        if self.unmerged_nodes() > 0 {
            let mut merged = self.clone();
            merged.compress();
            return merged.encode(to);
        }
        to.double(self.compression as f64);
        to.double(self.min);
        to.double(self.max);
        to.unsigned(self.capacity());
        to.unsigned(self.merged as u64);
        to.unsigned(0);
        to.unsigned(self.compressions as u64);
        to.double(rounded_sum(&self.nodes).min(i64::MAX.into()) as f64);
        to.double(0.0);
        self.nodes.iter().for_each(|node| to.double(node.mean));
        self.nodes.iter().for_each(|node| to.double(node.weight as f64));
    }

    fn decode(from: &mut impl FieldReader) -> Result<Self, DecodeError> {
        let compression = from.double()?;
        let is_whole = compression >= 1.0 && compression.fract() == 0.0;
        DecodeError::unless(is_whole && compression < MAX_CAPACITY as f64, "compression")?;
        let mut digest = Self::empty(compression as u64);
        (digest.min, digest.max) = (from.double()?, from.double()?);
        let (capacity, merged, unmerged) = (from.unsigned()?, from.unsigned()?, from.unsigned()?);
        let is_right = capacity == digest.capacity() && capacity <= MAX_CAPACITY;
        DecodeError::unless(is_right && merged <= capacity, "number of nodes")?;
        digest.compressions = from.unsigned()? as i64;
        let (weight, _) = (from.double()?, from.double()?);
        digest.load_nodes(from, merged as usize)?;
        // Older versions of t-digest-c save a single number nowhere but in min and max.
        let is_lost = merged == 0 && unmerged == 1 && digest.min == digest.max;
        if is_lost && digest.min.is_finite() {
            let number = digest.min;
            digest.nodes.push(Node { mean: number, weight: 1 });
            (digest.merged, digest.merged_weight) = (1, 1);
            from.note("its only number was not saved among its nodes: taken from its minimum");
            return Ok(digest);
        }
        DecodeError::unless(unmerged == 0, "number of unmerged nodes")?;
        if digest.merged_weight as f64 != weight {
            from.note("the weight of its nodes is not what it says: counted again");
        }
        if merged == 0 {
            (digest.min, digest.max) = (f64::MAX, -f64::MAX);
        }
        let is_range = digest.min.is_finite()
            && digest.max.is_finite()
            && (merged == 0 || digest.min <= digest.max);
        DecodeError::unless(is_range, "minimum or maximum")?;
        digest.settle_means()?;
        Ok(digest)
    }
}

impl TDigest {
    /// Reads means and weights. No capacity is trusted before they have come.
    fn load_nodes(&mut self, from: &mut impl FieldReader, count: usize) -> Result<(), DecodeError> {
        for _ in 0..count {
            let mean = from.double()?;
            DecodeError::unless(mean.is_finite(), "mean")?;
            self.nodes.push(Node { mean, weight: 0 });
        }
        for node in &mut self.nodes {
            let weight = from.double()?;
            let is_weight = weight >= 1.0 && weight.fract() == 0.0 && weight <= i64::MAX as f64;
            DecodeError::unless(is_weight, "weight")?;
            node.weight = weight as i64;
        }
        // Weights are saved as doubles, which round those above 2^53: at the end of the range, their sum may be beyond it.
        let sum: i128 = self.nodes.iter().map(|node| i128::from(node.weight)).sum();
        let excess = sum - i128::from(i64::MAX);
        if excess > 0 {
            DecodeError::unless(excess <= MOST_ROUNDED * self.nodes.len() as i128, "weight")?;
            let heaviest = self.nodes.iter_mut().max_by_key(|node| node.weight);
            let heaviest = heaviest.filter(|node| i128::from(node.weight) > excess);
            heaviest.ok_or(DecodeError::Field { what: "weight" })?.weight -= excess as i64;
        }
        self.merged_weight = self.nodes.iter().map(|node| node.weight).sum();
        self.merged = self.nodes.len();
        Ok(())
    }

    /// Refuses means that are not in order, between minimum and maximum. RedisBloom merges means without regard to rounding: what it
    /// can have moved is moved back.
    fn settle_means(&mut self) -> Result<(), DecodeError> {
        let (min, max) = (self.min, self.max);
        let tolerance = ROUNDING * min.abs().max(max.abs());
        let mut least = min;
        for node in &mut self.nodes {
            let is_near = node.mean >= least - tolerance && node.mean <= max + tolerance;
            DecodeError::unless(is_near, "mean: they must be in order, from minimum to maximum")?;
            node.mean = node.mean.clamp(least, max);
            least = node.mean;
        }
        Ok(())
    }
}

/// The sum of weights as files have them: as doubles.
fn rounded_sum(nodes: &[Node]) -> i128 {
    nodes.iter().map(|node| node.weight as f64 as i128).sum()
}
