//! Which kind to take for a number of keys, a rate or a size, and why.
//!
//! Numbers do not say what a filter is for. So one of the two kinds for everyday use is recommended, and beside it the
//! kinds for needs that numbers do not show: all keys known, removal, growth.

use super::Kind;
use super::plan::{Plan, Shape};

/// A plan that fits what was asked.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// The plan.
    pub plan: &'static Plan,
    /// Keys that the filter holds.
    pub keys: u64,
    /// What it costs.
    pub shape: Shape,
}

impl Offer {
    /// Bits per key.
    pub fn bits_per_key(&self) -> f64 {
        self.shape.bits as f64 / self.keys as f64
    }
}

/// What was asked for, which decides what a kind is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// How much memory do keys and rate take?
    Size,
    /// Which rate do keys have in a memory?
    Rate,
    /// How many keys fit a memory at a rate?
    Keys,
}

/// What speaks for a kind.
#[derive(Clone, Copy, Debug)]
pub enum Reason<'a> {
    /// It touches one cache line, and this one, of a Bloom filter, gives little more.
    Faster(&'a Offer),
    /// It gives much more than this one, of the fastest kind.
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

/// A kind, why, and what to take for other needs.
#[derive(Clone, Debug)]
pub struct Recommendation<'a> {
    /// The offer to take.
    pub offer: &'a Offer,
    /// Why.
    pub reason: Reason<'a>,
    /// For each other need the first kind that meets it, if one fits.
    pub alternatives: Vec<(Need, &'a Offer)>,
}

/// How much larger a blocked filter may be than a Bloom filter, or how much higher its rate: one memory access instead of
/// many is worth that, unless memory is all that counts.
const WORTH_BITS: f64 = 1.25;
const WORTH_RATE: f64 = 2.0;

/// The recommendation among these; `None` if there are none (bitmaps do not count: their keys are integers).
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

/// Whether a kind gives more of what was asked for.
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
        // Nothing else speaks for it, so it is named only if it gives more.
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
