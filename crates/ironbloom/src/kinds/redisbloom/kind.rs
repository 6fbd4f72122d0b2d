//! RedisBloom's filters among the kinds. They are queried by key, like foreign ones.

use super::RedisBloom;
use crate::kinds::any::Refused;
use crate::kinds::describe::Fact;
use crate::kinds::member::{Member, answers_by_key};
use crate::kinds::plan::{Abilities, Plan};
use crate::redisbloom::chain::Scaling;

const ABILITIES: Abilities = Abilities::INSERT;

/// None: servers create them.
pub(in crate::kinds) const PLANS: &[Plan] = &[];

impl Member for RedisBloom {
    answers_by_key!();

    fn describe(&self) -> Vec<Fact> {
        match self {
            Self::Bloom(chain) => vec![
                ("written by", "RedisBloom, BF".into()),
                ("sub-filters", (chain.links().len() as u64).into()),
                ("grows", matches!(chain.scaling(), Scaling::Growing(_)).into()),
            ],
            Self::Cuckoo(filter) => vec![
                ("written by", "RedisBloom, CF".into()),
                ("sub-filters", (filter.sub_filters() as u64).into()),
                ("slots per bucket", u64::from(filter.shape().bucket_size()).into()),
                ("grows", (filter.shape().expansion() > 0).into()),
            ],
        }
    }
}
