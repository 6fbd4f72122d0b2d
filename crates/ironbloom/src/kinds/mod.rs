//! The kinds of filter: a folder for each, and one list.
//!
//! A kind's folder holds everything about it: the parameters with their law, the filter, its bytes, and in `kind.rs`
//! its abilities and its plans. The rest of the crate knows a kind only by the list below; the program's options,
//! tables and messages follow from it.
//!
//! | file | what |
//! |---|---|
//! | [`filter`] | the traits: [`Filter`] answers, [`Insert`] takes keys, [`Remove`] removes them |
//! | [`member`] | operations of a kind whose type is known only at run time |
//! | [`any`] | [`AnyFilter`], a filter of any kind |
//! | [`describe`] | facts about a filter, for reports |
//! | [`plan`] | from a number of keys and a rate to a size, or to a filter |
//! | [`recommend`] | the kind to use for a request, and why |
//! | [`union`] | unions made in steps |
//! | [`steps`] | batch lookups that take the first probes of all keys before the others |
//! | [`removal`] | checks whether a list of keys to remove is plausible |

pub mod any;
mod collect;
pub mod describe;
pub(crate) mod filter;
mod member;
pub mod multi;
pub mod plan;
pub mod recommend;
pub mod removal;

pub(crate) mod bitmap;
pub(crate) mod blocked;
pub(crate) mod bloom;
pub(crate) mod counting;
pub(crate) mod cuckoo;
pub(crate) mod dleft;
mod fill;
pub(crate) mod foreign;
pub(crate) mod fuse;
pub(crate) mod redisbloom;
pub(crate) mod scalable;
pub(crate) mod steps;
mod union;
pub(crate) mod windowed;

pub use any::AnyFilter;
pub use bitmap::{Bitmap, OutOfBounds, Rank};
pub use blocked::{
    Blocked, BlockedBloom, BlockedBloomParams, BlockedParams, SplitBlock, SplitBlockParams,
};
pub use bloom::{Bloom, BloomLayout, BloomParams, MAX_PROBES};
pub use counting::CountingBloom;
pub use cuckoo::{Cuckoo, CuckooLayout, CuckooParams};
pub use dleft::{DLeft, DLeftParams};
pub use fill::{Fill, FillProgress};
pub(crate) use filter::check_lengths;
pub use filter::{Filter, Insert, Remove};
pub use foreign::{Foreign, MAX_FOREIGN_PROBES, Rule};
pub use fuse::{Arity, BinaryFuse, FuseParams};
pub(crate) use multi::{Joint, ParallelBloom};
pub use redisbloom::RedisBloom;
pub use removal::RemovalCheck;
pub use scalable::{Scalable, ScalableParams, StageInfo, StageKind};
pub use union::UnionProgress;
pub use windowed::{Windowed, WindowedParams};

/// Calls a macro with the list of kinds: for each its variant, its type, its number in files, its name on the command
/// line and in reports, and its plans. Tables use the same order.
///
/// This is the only place where kinds are listed. Types are those that this module re-exports.
macro_rules! with_kinds {
    ($macro:ident) => {
        $macro! {
            Bloom(Bloom) = 2, "bloom", bloom::PLANS;
            Blocked(BlockedBloom) = 3, "blocked", blocked::PLANS;
            SplitBlock(SplitBlock) = 4, "split-block", blocked::SPLIT_PLANS;
            Counting(CountingBloom) = 5, "counting", counting::PLANS;
            DLeft(DLeft) = 6, "d-left", dleft::PLANS;
            Cuckoo(Cuckoo) = 7, "cuckoo", cuckoo::PLANS;
            Fuse(BinaryFuse) = 8, "fuse", fuse::PLANS;
            Scalable(Scalable) = 9, "scalable", scalable::PLANS;
            Windowed(Windowed) = 10, "windowed", windowed::PLANS;
            Bitmap(Bitmap) = 1, "bitmap", bitmap::PLANS;
            Joint(Joint) = 12, "joint", multi::JOINT_PLANS;
            Parallel(ParallelBloom) = 11, "parallel", multi::PARALLEL_PLANS;
            Foreign(Foreign) = 13, "foreign", foreign::PLANS;
            RedisBloom(RedisBloom) = 14, "redisbloom", redisbloom::PLANS;
        }
    };
}
pub(crate) use with_kinds;

macro_rules! kind_enum {
    ($($variant:ident($filter:ident) = $number:literal, $name:literal, $plans:path;)*) => {
        /// The kinds of filter a file can hold.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u16)]
        pub enum Kind {
            $(
                #[doc = concat!("[`", stringify!($filter), "`](any::AnyFilter::", stringify!($variant), ")")]
                $variant = $number,
            )*
        }

        impl Kind {
            /// All kinds, in the order of tables.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$variant),*];

            /// Its name on the command line and in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The usual plan for filters of this kind, and their abilities. `None` for a kind that a number of keys
            /// and a rate do not determine.
            pub fn plan(self) -> Option<&'static plan::Plan> {
                match self {
                    $(Self::$variant => $plans.first(),)*
                }
            }
        }

        /// The plans of all kinds, in the order of tables.
        pub(crate) const PLANS: &[&[plan::Plan]] = &[$($plans),*];
    };
}
with_kinds!(kind_enum);

impl Kind {
    pub(crate) fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u16 == number)
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
