//! The shape of a Bloom filter, and where the probes of a key fall in it.

use std::ops::Range;

use crate::error::{DecodeError, Mismatch, ParamError, check_range, check_rate};
use crate::hash::Scheme;
use crate::kernel::{FIRST_PROBES, Flat};
use crate::kinds::steps::steps;
use crate::sizing::{self, Occupancy, Thresholds};

/// Maximum number of probes. At 64 the rate is 2^-64, the floor of the hash itself.
pub const MAX_PROBES: u32 = 64;

/// The region in which the probes of a key may fall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BloomLayout {
    /// Anywhere in the bits.
    #[default]
    Flat,
    /// Probe i in the i-th of k equal slices.
    Segmented,
}

/// The validated shape of a [`Bloom`](super::Bloom): plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BloomParams {
    pub(super) bits: u64,
    pub(super) probes: u32,
    pub(super) capacity: u64,
    pub(super) layout: BloomLayout,
    scheme: Scheme,
    /// The range of one probe: all bits, or a slice.
    pub(super) range: u64,
    /// True if it is flat, uses the default scheme and has at least as many probes as a lookup makes first: [`Flat`]
    /// handles such filters.
    is_plain: bool,
}

impl BloomParams {
    /// Plans the smallest flat filter that holds `capacity` keys at `rate`.
    pub fn for_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        check_rate(capacity, rate)?;
        let shape = sizing::bloom_shape(capacity, rate);
        Self::checked(shape.bits, shape.probes, capacity, BloomLayout::Flat)
    }

    /// Plans the smallest segmented filter that holds `capacity` keys at `rate`.
    pub fn segmented_for_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        check_rate(capacity, rate)?;
        let shape = sizing::segmented_shape(capacity, rate);
        Self::checked(shape.bits, shape.probes, capacity, BloomLayout::Segmented)
    }

    /// Plans a filter with exactly `bits` bits and `probes` probes. Its capacity is the number of keys that set half of
    /// the bits, for which `probes` is the best choice; change it with [`with_capacity`](Self::with_capacity).
    pub fn for_bits(bits: u64, probes: u32) -> Result<Self, ParamError> {
        check_range("probes", u64::from(probes), 1, u64::from(MAX_PROBES))?;
        let capacity = (bits as f64 * std::f64::consts::LN_2 / f64::from(probes)).max(1.0);
        Self::checked(bits, probes, capacity as u64, BloomLayout::Flat)
    }

    fn checked(
        bits: u64,
        probes: u32,
        capacity: u64,
        layout: BloomLayout,
    ) -> Result<Self, ParamError> {
        check_range("probes", u64::from(probes), 1, u64::from(MAX_PROBES))?;
        check_range("bits", bits, u64::from(probes), u64::MAX >> 4)?;
        check_range("capacity", capacity, 1, u64::MAX)?;
        let scheme = Scheme::Remix;
        let params = Self { bits, probes, capacity, layout, scheme, range: bits, is_plain: false };
        Ok(if layout == BloomLayout::Segmented { params.segmented() } else { params.settled() })
    }

    /// Fills in the derived fields.
    fn settled(mut self) -> Self {
        self.is_plain = self.layout == BloomLayout::Flat
            && self.scheme == Scheme::Remix
            && self.probes >= FIRST_PROBES;
        self
    }

    /// Splits the same number of bits (rounded up to a multiple of the probes) into slices.
    pub fn segmented(mut self) -> Self {
        self.layout = BloomLayout::Segmented;
        self.bits = self.bits.next_multiple_of(u64::from(self.probes));
        self.range = self.bits / u64::from(self.probes);
        self.settled()
    }

    /// Sets the capacity: the number of keys planned for.
    pub fn with_capacity(mut self, capacity: u64) -> Result<Self, ParamError> {
        check_range("capacity", capacity, 1, u64::MAX)?;
        self.capacity = capacity;
        Ok(self)
    }

    /// Sets a different probe sequence. Only for comparison: see [`Scheme`].
    pub fn with_scheme(mut self, scheme: Scheme) -> Result<Self, ParamError> {
        self.scheme = scheme;
        check_range("bits", self.range, 1, scheme.max_range())?;
        Ok(self.settled())
    }

    /// The parameters for the kernel, if it can handle the filter.
    #[inline(always)]
    pub(crate) fn plain(&self) -> Option<Flat> {
        self.is_plain.then_some(Flat { bits: self.bits, probes: self.probes })
    }

    /// Number of bits, m.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Number of probes, k.
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// The capacity: the number of keys planned for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Flat or segmented.
    pub fn layout(&self) -> BloomLayout {
        self.layout
    }

    /// The probe sequence.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The expected rate with `len` keys in the filter, by the exact formula for its layout.
    pub fn rate_at(&self, len: u64) -> f64 {
        match self.layout {
            BloomLayout::Flat => sizing::bloom_rate_exact(self.bits, self.probes, len),
            BloomLayout::Segmented => sizing::segmented_rate(self.bits, self.probes, len),
        }
    }

    /// The thresholds for `capacity` keys. The simple rate formula is accurate enough here, and cheap.
    pub(super) fn thresholds(&self) -> Thresholds {
        let (bits, probes) = (self.bits, self.probes);
        let rate_at = |len| sizing::bloom_rate(bits, probes, len);
        Thresholds::new(self.capacity, bits, rate_at, self.occupancy())
    }

    /// The number of bits that `capacity` keys set.
    fn occupancy(&self) -> Occupancy {
        match self.layout {
            BloomLayout::Flat => sizing::bloom_occupancy(self.bits, self.probes, self.capacity),
            BloomLayout::Segmented => {
                sizing::segmented_occupancy(self.bits, self.probes, self.capacity)
            }
        }
    }

    /// More set bits than this indicate more than `capacity` keys.
    pub(crate) fn most_bits(&self) -> u64 {
        self.occupancy().most(self.bits)
    }

    /// Folds the positions of these probes of a hash: see [`Scheme::fold`].
    #[inline(always)]
    pub(crate) fn fold<T>(
        &self,
        hash: u64,
        probes: Range<u32>,
        first: T,
        mut visit: impl FnMut(T, u64) -> T,
    ) -> T {
        let range = self.range;
        match self.layout {
            BloomLayout::Flat => {
                self.scheme
                    .fold(hash, probes, range, first, |so_far, _, position| visit(so_far, position))
            }
            BloomLayout::Segmented => {
                self.scheme.fold(hash, probes, range, first, |so_far, i, position| {
                    visit(so_far, u64::from(i) * range + position)
                })
            }
        }
    }

    /// Calls `visit` with the positions of these probes for a hash.
    #[inline(always)]
    pub(crate) fn positions(&self, hash: u64, probes: Range<u32>, mut visit: impl FnMut(u64)) {
        self.fold(hash, probes, (), |(), position| visit(position));
    }

    /// All probes.
    pub(crate) fn all(&self) -> Range<u32> {
        0..self.probes
    }

    /// Returns true if the lowest bit of `bit(position)` is set for all these probes.
    #[inline(always)]
    pub(crate) fn are_set(&self, hash: u64, probes: Range<u32>, bit: impl Fn(u64) -> u64) -> bool {
        self.fold(hash, probes, 1, |all, position| all & bit(position)) & 1 == 1
    }

    /// Returns true if the lowest bit of `bit(position)` is set for all probes.
    ///
    /// In two steps: a branch after every probe is mispredicted once for most keys, which costs more than three probes,
    /// and seven in eight absent keys need no more than three.
    #[inline(always)]
    pub(crate) fn contains(&self, hash: u64, bit: impl Fn(u64) -> u64) -> bool {
        let [first, rest] = steps(self.probes);
        self.are_set(hash, first, &bit) && self.are_set(hash, rest, &bit)
    }

    /// Returns an error unless two filters with these parameters set the same bits for the same hash.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::unless_equal("number of bits", self.bits, other.bits)?;
        Mismatch::unless_equal("number of probes", self.probes, other.probes)?;
        let name = |p: &Self| if p.layout == BloomLayout::Flat { "flat" } else { "segmented" };
        Mismatch::unless_equal("form", name(self), name(other))?;
        Mismatch::unless_equal("probe scheme", self.scheme.name(), other.scheme.name())
    }

    /// The parameters as stored in a file.
    pub(crate) fn encode(&self) -> [u64; 4] {
        let layout = u64::from(self.layout == BloomLayout::Segmented);
        let scheme = Scheme::ALL.iter().position(|&s| s == self.scheme).unwrap_or_default();
        [self.bits, u64::from(self.probes), layout, scheme as u64]
    }

    /// Reads the parameters from a file, each validated before use.
    pub(crate) fn decode(fields: [u64; 4], capacity: u64) -> Result<Self, DecodeError> {
        let [bits, probes, layout, scheme] = fields;
        let probes = u32::try_from(probes)
            .map_err(|_| DecodeError::Invalid { what: "number of probes", value: probes })?;
        let layout = match layout {
            0 => BloomLayout::Flat,
            1 => BloomLayout::Segmented,
            value => return Err(DecodeError::Invalid { what: "form", value }),
        };
        let scheme = usize::try_from(scheme)
            .ok()
            .and_then(|scheme| Scheme::ALL.get(scheme).copied())
            .ok_or(DecodeError::Invalid { what: "probe scheme", value: scheme })?;
        let params = Self::checked(bits, probes, capacity, layout)?;
        if layout == BloomLayout::Segmented && !bits.is_multiple_of(u64::from(probes)) {
            return Err(DecodeError::Invalid { what: "number of bits", value: bits });
        }
        Ok(params.with_scheme(scheme)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_a_segmented_filter_fall_each_in_its_slice() {
        let params = BloomParams::segmented_for_rate(100, 0.01).unwrap();
        for key in 0..100 {
            let mut slice = 0;
            params.positions(crate::hash::mix64(key), params.all(), |position| {
                assert_eq!(position / params.range, slice);
                slice += 1;
            });
            assert_eq!(slice, u64::from(params.probes));
        }
    }

    #[test]
    fn bits_and_probes_out_of_range_are_refused() {
        assert!(BloomParams::for_bits(0, 1).is_err());
        assert!(BloomParams::for_bits(100, 0).is_err());
        assert!(BloomParams::for_bits(100, MAX_PROBES + 1).is_err());
        assert!(BloomParams::for_bits(u64::MAX, 7).is_err());
        let large = BloomParams::for_bits(1 << 33, 7).unwrap();
        assert!(large.with_scheme(Scheme::LevelDb).is_err());
        assert!(large.with_scheme(Scheme::Enhanced).is_ok());
    }
}
