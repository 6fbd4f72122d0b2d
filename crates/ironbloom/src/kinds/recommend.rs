//! The kind to use for a number of keys, a rate or a size, and why.
//!
//! Numbers do not say what a filter is for. So one of the two everyday kinds is recommended, along with the kinds for
//! needs that numbers do not show: all keys known, removal, growth.

use super::Kind;
use super::plan::{Plan, Shape};

/// A plan that fits the request.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// The plan.
    pub plan: &'static Plan,
    /// Number of keys that the filter holds.
    pub keys: u64,
    /// Its cost.
    pub shape: Shape,
}

impl Offer {
    /// Bits per key.
    pub fn bits_per_key(&self) -> f64 {
        self.shape.bits as f64 / self.keys as f64
    }
}

/// The quantity requested, by which a kind is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// The memory that keys and rate take.
    Size,
    /// The rate that keys have in a given memory.
    Rate,
    /// The number of keys that fit into a given memory at a rate.
    Keys,
}

/// The advantage of a kind.
#[derive(Clone, Copy, Debug)]
pub enum Reason<'a> {
    /// It touches one cache line, and this offer, of a Bloom filter, is little better.
    Faster(&'a Offer),
    /// It is much better than this offer, of the fastest kind.
    Better(&'a Offer),
    /// The fastest kind does not fit.
    FastestDoesNotFit,
    /// It is the fastest kind.
    Fastest,
    /// It is the smallest that fits.
    Smallest,
}

/// A need that numbers do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// All keys are known before the first lookup.
    AllKeysKnown,
    /// Keys will be removed.
    Removal,
    /// The number of keys is unknown.
    Growth,
}

/// A kind, the reason, and alternatives for other needs.
#[derive(Clone, Debug)]
pub struct Recommendation<'a> {
    /// The recommended offer.
    pub offer: &'a Offer,
    /// The reason.
    pub reason: Reason<'a>,
    /// The first kind that meets each other need, if one fits.
    pub alternatives: Vec<(Need, &'a Offer)>,
}

/// How much larger a blocked filter may be than a Bloom filter, or how much higher its rate: one memory access instead of
/// many is worth that, unless memory is all that counts.
const WORTH_BITS: f64 = 1.25;
const WORTH_RATE: f64 = 2.0;

/// Returns the recommendation among these; `None` if there are none (bitmaps do not count: their keys are integers).
pub fn recommend(offers: &[Offer], sought: Sought) -> Option<Recommendation<'_>> {
    let of = |name: &str| offers.iter().find(|offer| offer.plan.name == name);
    let (offer, reason) = match (of("blocked"), of("bloom")) {
        (Some(blocked), Some(bloom)) if is_worth_it(blocked, bloom, sought) => {
            (blocked, Reason::Faster(bloom))
        }
        (Some(blocked), Some(bloom)) => (bloom, Reason::Better(blocked)),
        (None, Some(bloom)) => (bloom, Reason::FastestDoesNotFit),
        (Some(blocked), None) => (blocked, Reason::Fastest),
        (None, None) => {
            let smallest = offers
                .iter()
                .filter(|offer| offer.plan.kind != Kind::Bitmap)
                .min_by(|a, b| a.bits_per_key().total_cmp(&b.bits_per_key()))?;
            (smallest, Reason::Smallest)
        }
    };
    Some(Recommendation { offer, reason, alternatives: alternatives(offers, offer, sought) })
}

fn is_worth_it(blocked: &Offer, bloom: &Offer, sought: Sought) -> bool {
    match sought {
        Sought::Size => blocked.bits_per_key() <= WORTH_BITS * bloom.bits_per_key(),
        Sought::Rate => blocked.shape.rate <= WORTH_RATE * bloom.shape.rate,
        Sought::Keys => WORTH_BITS * blocked.keys as f64 >= bloom.keys as f64,
    }
}

/// Returns true if an offer is better in the quantity requested.
fn is_better(one: &Offer, other: &Offer, sought: Sought) -> bool {
    match sought {
        Sought::Size => one.shape.bytes() < other.shape.bytes(),
        Sought::Rate => one.shape.rate < other.shape.rate,
        Sought::Keys => one.keys > other.keys,
    }
}

fn alternatives<'a>(offers: &'a [Offer], taken: &Offer, sought: Sought) -> Vec<(Need, &'a Offer)> {
    let of =
        |name: &str| offers.iter().find(|offer| offer.plan.name == name && name != taken.plan.name);
    let needs = [
        // Its only advantage is size, so it is listed only if it is better.
        (Need::AllKeysKnown, of("fuse").filter(|fuse| is_better(fuse, taken, sought))),
        (Need::Removal, ["cuckoo", "d-left", "counting"].into_iter().find_map(of)),
        (Need::Growth, of("scalable")),
    ];
    needs.into_iter().filter_map(|(need, offer)| Some((need, offer?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;

    fn offers(keys: u64, rate: f64) -> Vec<Offer> {
        let offer =
            |plan: &'static Plan| Some(Offer { plan, keys, shape: plan.shape(keys, rate).ok()? });
        plan::all().filter_map(offer).collect()
    }

    #[test]
    fn the_fastest_kind_is_taken_while_it_costs_little_more() {
        // Blocked takes 1.23 times the bits of bloom at the first rate, and 1.34 times at the second.
        let (cheap, dear) = (offers(1_000_000, 1e-4), offers(1_000_000, 3e-5));
        let taken = |offers: &[Offer]| recommend(offers, Sought::Size).unwrap().offer.plan.name;
        assert_eq!((taken(&cheap), taken(&dear)), ("blocked", "bloom"));
        assert!(recommend(&[], Sought::Size).is_none());
    }

    #[test]
    fn other_needs_name_kinds_that_meet_them() {
        let offers = offers(1_000_000, 0.01);
        let found = recommend(&offers, Sought::Size).unwrap();
        let names: Vec<_> =
            found.alternatives.iter().map(|(need, offer)| (*need, offer.plan.name)).collect();
        let wanted =
            [(Need::AllKeysKnown, "fuse"), (Need::Removal, "cuckoo"), (Need::Growth, "scalable")];
        assert_eq!(names, wanted);
    }
}
