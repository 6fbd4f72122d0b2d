//! Which kind to take for what `plan` was asked, and why, in a sentence.
//!
//! `plan` knows numbers and not what the filter is for, so it recommends one of the two kinds for everyday use and names
//! those for the needs that it cannot know: all keys at hand, removal, growth.

use serde_json::{Value, json};

use ironbloom::Kind;
use ironbloom::plan::Shape;

use crate::kinds::KindArg;
use crate::number;

/// A kind that fits what was asked.
pub(crate) struct Offer {
    pub(crate) kind: KindArg,
    pub(crate) keys: u64,
    pub(crate) shape: Shape,
}

impl Offer {
    fn bytes(&self) -> u64 {
        self.shape.bits.div_ceil(8)
    }

    fn bits_per_key(&self) -> f64 {
        self.shape.bits as f64 / self.keys as f64
    }
}

/// What was asked for, which decides what a kind is judged by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sought {
    Size,
    Rate,
    Keys,
}

/// A kind, and why it.
pub(crate) struct Recommendation {
    kind: KindArg,
    reason: String,
    others: String,
}

/// How much larger a blocked filter may be than a Bloom filter, or how much worse its rate: one memory access instead of
/// many is worth that, unless memory is all that counts.
const WORTH_BITS: f64 = 1.25;
const WORTH_RATE: f64 = 2.0;

/// The recommendation, if any kind fits.
pub(crate) fn among(offers: &[Offer], sought: Sought) -> Option<Recommendation> {
    let of = |name: &str| offers.iter().find(|offer| offer.kind.name == name);
    let (kind, reason) = match (of("blocked"), of("bloom")) {
        (Some(blocked), Some(bloom)) if is_worth_it(blocked, bloom, sought) => {
            (blocked.kind, against_bloom(blocked, bloom, sought))
        }
        (Some(blocked), Some(bloom)) => (bloom.kind, against_blocked(bloom, blocked, sought)),
        (None, Some(bloom)) => {
            let reason = format!(
                "{} a key, and the fastest kind, blocked, does not reach this",
                bits(bloom.bits_per_key())
            );
            (bloom.kind, reason)
        }
        (Some(blocked), None) => (blocked.kind, bits(blocked.bits_per_key()) + " a key"),
        (None, None) => {
            let smallest = offers
                .iter()
                .filter(|offer| !offer.kind.is(Kind::Bitmap))
                .min_by(|a, b| a.bits_per_key().total_cmp(&b.bits_per_key()))?;
            (smallest.kind, "the smallest of the kinds that fit".to_owned())
        }
    };
    let others = for_other_needs(offers, of(kind.name)?, sought);
    Some(Recommendation { kind, reason, others })
}

fn is_worth_it(blocked: &Offer, bloom: &Offer, sought: Sought) -> bool {
    match sought {
        Sought::Size => blocked.bits_per_key() <= WORTH_BITS * bloom.bits_per_key(),
        Sought::Rate => blocked.shape.rate <= WORTH_RATE * bloom.shape.rate,
        Sought::Keys => WORTH_BITS * blocked.keys as f64 >= bloom.keys as f64,
    }
}

fn against_bloom(blocked: &Offer, bloom: &Offer, sought: Sought) -> String {
    let faster = format!(
        "a lookup reads one cache line, where bloom reads up to {}",
        number::count(bloom.shape.lines.into())
    );
    let (ours, theirs) = compared(blocked, bloom, sought);
    format!("{faster}, for {ours} instead of {theirs}")
}

fn against_blocked(bloom: &Offer, blocked: &Offer, sought: Sought) -> String {
    let (ours, theirs) = compared(bloom, blocked, sought);
    format!("{ours}, where blocked, the fastest kind, has {theirs}")
}

/// What the two come to, in the terms of the question.
fn compared(one: &Offer, other: &Offer, sought: Sought) -> (String, String) {
    let of = |offer: &Offer| match sought {
        Sought::Size => number::bytes(offer.bytes()),
        Sought::Rate => format!("a rate of {}", number::rate(offer.shape.rate)),
        Sought::Keys => number::plural(offer.keys, "key"),
    };
    (of(one), of(other))
}

/// Whether a kind gives more of what was asked for.
fn is_better(one: &Offer, other: &Offer, sought: Sought) -> bool {
    match sought {
        Sought::Size => one.bytes() < other.bytes(),
        Sought::Rate => one.shape.rate < other.shape.rate,
        Sought::Keys => one.keys > other.keys,
    }
}

fn bits(value: f64) -> String {
    format!("{value:.2} bits")
}

/// What to take if there is more to it than keys and rate: of each need the first kind that can do it.
fn for_other_needs(offers: &[Offer], taken: &Offer, sought: Sought) -> String {
    let others = || offers.iter().filter(|offer| offer.kind != taken.kind);
    let of = |name: &str| others().find(|offer| offer.kind.name == name);
    let remove = ["cuckoo", "d-left", "counting"];
    let needs = [
        // Nothing else speaks for it, so it is named only if it gives more.
        (
            "all keys are known before the first lookup",
            of("fuse").filter(|fuse| is_better(fuse, taken, sought)),
        ),
        ("keys will be removed", remove.into_iter().find_map(of)),
        ("nobody knows how many will come", of("scalable")),
    ];
    let needs: Vec<String> = needs
        .into_iter()
        .filter_map(|(need, offer)| {
            let (text, _) = compared(offer?, offer?, sought);
            Some(format!("{} ({text}) if {need}", offer?.kind.name))
        })
        .collect();
    if needs.is_empty() { String::new() } else { format!(" Or take {}.", needs.join(", ")) }
}

impl Recommendation {
    pub(crate) fn text(&self) -> String {
        format!("Take {}: {}.{}", self.kind.name, self.reason, self.others)
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "kind": self.kind.name, "reason": self.text() })
    }
}
