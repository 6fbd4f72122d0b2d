//! Foreign filters among the kinds. They are queried by key: their rules do not derive bits from a
//! 64-bit hash.

use super::Foreign;
use crate::hash::KeyForm;
use crate::kinds::any::{AnyFilter, Refused};
use crate::kinds::describe::{Fact, FactValue};
use crate::kinds::member::{Listed, Member, answers_by_key, intersects, merges};
use crate::kinds::plan::{Abilities, Plan};

const ABILITIES: Abilities = Abilities { merge: true, intersect: true, ..Abilities::INSERT };

/// None: size and rate do not determine the program that a filter is for.
pub(in crate::kinds) const PLANS: &[Plan] = &[];

impl Member for Foreign {
    answers_by_key!();
    merges!();
    intersects!();

    fn clear(&mut self) -> Result<(), Refused> {
        Self::clear(self);
        Ok(())
    }

    fn describe(&self) -> Vec<Fact> {
        let form = self.form().map_or_else(
            || {
                let forms: Vec<&str> = self.rule().forms().map(KeyForm::name).collect();
                format!("not recorded: {}", forms.join(", "))
            },
            |form| form.to_string(),
        );
        vec![
            ("written by", self.rule().name().into()),
            ("keys are", FactValue::Text(form)),
            ("bits", self.bits().into()),
            ("probes", self.probes().into()),
            ("fill", FactValue::Ratio(self.fill())),
        ]
    }
}
