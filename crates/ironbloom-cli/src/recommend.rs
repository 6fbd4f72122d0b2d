//! The recommendation of `plan`, in a sentence.

use ironbloom::recommend::{Need, Offer, Reason, Recommendation, Sought};
use serde_json::{Value, json};

use crate::number;

/// Result of an offer, in the terms of the question.
fn amount(offer: &Offer, sought: Sought) -> String {
    match sought {
        Sought::Size => number::bytes(offer.shape.bytes()),
        Sought::Rate => format!("a rate of {}", number::rate(offer.shape.rate)),
        Sought::Keys => number::plural(offer.keys, "key"),
    }
}

fn bits(offer: &Offer) -> String {
    format!("{:.2} bits per key", offer.bits_per_key())
}

fn reason(found: &Recommendation<'_>, sought: Sought) -> String {
    let ours = amount(found.offer, sought);
    match found.reason {
        Reason::Faster(bloom) => format!(
            "a lookup reads one cache line, where bloom reads up to {}, for {ours} instead of {}",
            number::count(bloom.shape.lines.into()),
            amount(bloom, sought)
        ),
        Reason::Better(blocked) => {
            format!("{ours}, where blocked, the fastest kind, has {}", amount(blocked, sought))
        }
        Reason::FastestDoesNotFit => {
            format!("{}, and the fastest kind, blocked, does not reach this", bits(found.offer))
        }
        Reason::Fastest => bits(found.offer),
        Reason::Smallest => "the smallest of the kinds that fit".to_owned(),
    }
}

fn alternatives(found: &Recommendation<'_>, sought: Sought) -> String {
    let texts: Vec<String> = found
        .alternatives
        .iter()
        .map(|(need, offer)| {
            let need = match need {
                Need::AllKeysKnown => "all keys are known before the first lookup",
                Need::Removal => "keys will be removed",
                Need::Growth => "the number of keys is unknown",
            };
            format!("{} ({}) if {need}", offer.plan.name, amount(offer, sought))
        })
        .collect();
    if texts.is_empty() { String::new() } else { format!(" Or take {}.", texts.join(", ")) }
}

pub(crate) fn text(found: &Recommendation<'_>, sought: Sought) -> String {
    let name = found.offer.plan.name;
    format!("Take {name}: {}.{}", reason(found, sought), alternatives(found, sought))
}

pub(crate) fn json(found: &Recommendation<'_>, sought: Sought) -> Value {
    json!({ "kind": found.offer.plan.name, "reason": text(found, sought) })
}
