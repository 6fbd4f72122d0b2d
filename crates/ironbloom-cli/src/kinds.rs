//! The kinds of filter as the command line names them: what each costs, can do, and how it is made.

use clap::ValueEnum;
use ironbloom::any::AnyFilter;
use ironbloom::multi::{Attributes, Joint};
use ironbloom::{
    Arity, BinaryFuse, Bitmap, BlockedBloom, BlockedBloomParams, Bloom, BloomParams, CountingBloom,
    Cuckoo, CuckooParams, DLeft, DLeftParams, FuseParams, HashFn, ParamError, Scalable,
    ScalableParams, SplitBlock, SplitBlockParams, Windowed, WindowedParams,
};

/// A kind of filter, with the variants of one kind told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// Classic Bloom filter: any rate, merges
    Bloom,
    /// Bloom filter in k slices
    Segmented,
    /// One cache line per key: the fastest
    Blocked,
    /// Parquet's split block filter
    SplitBlock,
    /// 4-bit counters: removes and merges, four times the size
    Counting,
    /// d-left counting filter: removes
    DLeft,
    /// Cuckoo filter: removes, two cache lines
    Cuckoo,
    /// Cuckoo filter, semi-sorted: one bit per key less, slower
    CuckooPacked,
    /// Binary fuse filter: the smallest, from keys that are all known
    Fuse,
    /// Binary fuse filter, 4-wise: smaller still, slower to build
    Fuse4,
    /// Grows without end, rate held
    Scalable,
    /// Forgets all but the last keys
    Windowed,
    /// Exact set of integers below the capacity
    Bitmap,
    /// Rows of several columns (--csv a,b): are these values there together? Removes
    Joint,
}

/// What a filter of a kind comes to, before it is made.
pub(crate) struct Shape {
    /// Bits of storage.
    pub(crate) bits: u64,
    /// Places looked at for a key that is present.
    pub(crate) probes: u32,
    /// Cache lines those lie in, at most.
    pub(crate) lines: u32,
    /// The rate it delivers at capacity.
    pub(crate) rate: f64,
}

impl KindArg {
    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(crate) fn can_remove(self) -> bool {
        matches!(
            self,
            Self::Counting
                | Self::DLeft
                | Self::Cuckoo
                | Self::CuckooPacked
                | Self::Bitmap
                | Self::Joint
        )
    }

    pub(crate) fn can_grow(self) -> bool {
        self == Self::Scalable
    }

    pub(crate) fn can_forget(self) -> bool {
        self == Self::Windowed
    }

    pub(crate) fn can_merge(self) -> bool {
        !matches!(self, Self::Fuse | Self::Fuse4 | Self::Windowed | Self::Joint)
    }

    /// Whether a filter of this kind is made from the set of all its keys: because it is static, or because it
    /// keeps a trace of every insert, and a key given twice would take the room of two.
    pub(crate) fn wants_distinct_keys(self) -> bool {
        matches!(
            self,
            Self::Fuse
                | Self::Fuse4
                | Self::Counting
                | Self::DLeft
                | Self::Cuckoo
                | Self::CuckooPacked
                | Self::Joint
        )
    }

    /// What it takes to hold `capacity` keys at `rate`.
    pub(crate) fn shape(self, capacity: u64, rate: f64) -> Result<Shape, ParamError> {
        let bloom = |params: BloomParams, bits_each: u64| Shape {
            bits: params.bits() * bits_each,
            probes: params.probes(),
            lines: params.probes(),
            rate: params.rate_at(capacity),
        };
        Ok(match self {
            Self::Bloom => bloom(BloomParams::for_rate(capacity, rate)?, 1),
            Self::Segmented => bloom(BloomParams::segmented_for_rate(capacity, rate)?, 1),
            Self::Counting => bloom(BloomParams::for_rate(capacity, rate)?, 4),
            Self::Blocked => {
                let params = BlockedBloomParams::for_rate(capacity, rate)?;
                Shape { bits: params.bits(), probes: 8, lines: 1, rate: params.rate_at(capacity) }
            }
            Self::SplitBlock => {
                let params = SplitBlockParams::for_rate(capacity, rate)?;
                Shape { bits: params.bits(), probes: 8, lines: 1, rate: params.rate_at(capacity) }
            }
            Self::DLeft => {
                let params = DLeftParams::for_rate(capacity, rate)?;
                Shape { bits: params.bits(), probes: 4, lines: 4, rate: params.rate_at(capacity) }
            }
            Self::Cuckoo | Self::CuckooPacked | Self::Joint => {
                let params = self.cuckoo(capacity, rate)?;
                Shape { bits: params.bits(), probes: 2, lines: 2, rate: params.rate_at(capacity) }
            }
            Self::Fuse | Self::Fuse4 => {
                let params = self.fuse(rate)?;
                let cells = params.arity().cells();
                Shape {
                    bits: params.bits(capacity),
                    probes: cells,
                    lines: cells,
                    rate: params.rate(),
                }
            }
            Self::Scalable => {
                let params = ScalableParams::new(capacity, rate)?;
                let stage = BloomParams::segmented_for_rate(capacity, params.stage_rate(0))?;
                Shape { rate, ..bloom(stage, 1) }
            }
            Self::Windowed => {
                let params = WindowedParams::for_keys(capacity, rate)?;
                let probes = params.probes();
                Shape { bits: params.bits(), probes, lines: probes, rate: params.rate() }
            }
            Self::Bitmap => Shape { bits: capacity, probes: 1, lines: 1, rate: 0.0 },
        })
    }

    /// The shape of a cuckoo filter, by itself or under a joint one.
    pub(crate) fn cuckoo(self, capacity: u64, rate: f64) -> Result<CuckooParams, ParamError> {
        if self == Self::CuckooPacked {
            CuckooParams::packed_for_rate(capacity, rate)
        } else {
            CuckooParams::for_rate(capacity, rate)
        }
    }

    fn fuse(self, rate: f64) -> Result<FuseParams, ParamError> {
        let arity = if self == Self::Fuse4 { Arity::Four } else { Arity::Three };
        Ok(FuseParams::for_rate(rate)?.with_arity(arity))
    }

    /// The hash of a new filter. Parquet prescribes one; a bitmap needs none.
    pub(crate) fn hash_fn(self, seed: u64) -> HashFn {
        if self == Self::SplitBlock { HashFn::Xxh64 { seed } } else { HashFn::Xxh3 { seed } }
    }

    /// An empty filter. Fuse filters cannot be empty and filled later: see [`KindArg::build`].
    pub(crate) fn create(
        self,
        capacity: u64,
        rate: f64,
        seed: u64,
    ) -> Result<AnyFilter, ParamError> {
        let hash_fn = self.hash_fn(seed);
        Ok(match self {
            Self::Bloom => {
                AnyFilter::Bloom(Bloom::new(BloomParams::for_rate(capacity, rate)?, hash_fn)?)
            }
            Self::Segmented => AnyFilter::Bloom(Bloom::new(
                BloomParams::segmented_for_rate(capacity, rate)?,
                hash_fn,
            )?),
            Self::Blocked => AnyFilter::Blocked(BlockedBloom::new(
                BlockedBloomParams::for_rate(capacity, rate)?,
                hash_fn,
            )?),
            Self::SplitBlock => AnyFilter::SplitBlock(SplitBlock::new(
                SplitBlockParams::for_rate(capacity, rate)?,
                hash_fn,
            )?),
            Self::Counting => AnyFilter::Counting(CountingBloom::new(
                BloomParams::for_rate(capacity, rate)?,
                hash_fn,
            )?),
            Self::DLeft => {
                AnyFilter::DLeft(DLeft::new(DLeftParams::for_rate(capacity, rate)?, hash_fn)?)
            }
            Self::Cuckoo | Self::CuckooPacked => {
                AnyFilter::Cuckoo(Cuckoo::new(self.cuckoo(capacity, rate)?, hash_fn)?)
            }
            Self::Fuse | Self::Fuse4 => {
                AnyFilter::Fuse(BinaryFuse::from_hashes(&[], self.fuse(rate)?, hash_fn)?)
            }
            Self::Scalable => {
                AnyFilter::Scalable(Scalable::new(ScalableParams::new(capacity, rate)?, hash_fn)?)
            }
            Self::Windowed => AnyFilter::Windowed(Windowed::new(
                WindowedParams::for_keys(capacity, rate)?,
                hash_fn,
            )?),
            Self::Bitmap => AnyFilter::Bitmap(Bitmap::new(capacity)?),
            // Rows need attributes, which nobody gave here: an error that says so.
            Self::Joint => AnyFilter::Joint(Joint::new(
                self.cuckoo(capacity, rate)?,
                Attributes::new([""; 0], hash_fn)?,
            )?),
        })
    }

    /// A filter of these keys, which are distinct, planned for `capacity` of them.
    pub(crate) fn build(
        self,
        hashes: &[u64],
        capacity: u64,
        rate: f64,
        seed: u64,
    ) -> anyhow::Result<AnyFilter> {
        if let Self::Fuse | Self::Fuse4 = self {
            let params = self.fuse(rate)?;
            return Ok(AnyFilter::Fuse(BinaryFuse::from_hashes(
                hashes,
                params,
                self.hash_fn(seed),
            )?));
        }
        let mut filter = self.create(capacity, rate, seed)?;
        filter.insert_distinct_hashes(hashes)?;
        Ok(filter)
    }
}
