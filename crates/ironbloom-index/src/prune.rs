//! Which files can have matching rows, by the columns that have one value in all rows of a file?
//!
//! ```text
//!  country = 'SE' and id = 7          country=SE/…   ──► true and id = 7    ──► id = 7 is looked up
//!                                     country=NO/…   ──► false and id = 7   ──► excluded, without opening anything
//! ```
//!
//! What such columns decide is replaced by true or false, and files for which the same is left are looked up together.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};

use crate::evaluate::evaluate;
use crate::predicate::Predicate;

/// Files for which the same is left of a predicate.
pub(crate) struct Group {
    /// What is left: it matches the same rows of these files.
    pub(crate) predicate: Predicate,
    /// The numbers of the files.
    pub(crate) files: Vec<usize>,
}

/// The groups of `files` files that may have matching rows. `constants` says which columns of a file have one value.
pub(crate) fn groups<E>(
    predicate: &Predicate,
    files: usize,
    mut constants: impl FnMut(usize) -> Result<Vec<(String, ArrayRef)>, E>,
) -> Result<Vec<Group>, E> {
    let mut by_answers: HashMap<Vec<Option<bool>>, Vec<usize>> = HashMap::new();
    for file in 0..files {
        let mut answers = Vec::new();
        ask(predicate, &constants(file)?, &mut answers);
        by_answers.entry(answers).or_default().push(file);
    }
    let group = |(answers, files): (Vec<Option<bool>>, Vec<usize>)| {
        let predicate = left(predicate, &mut answers.into_iter());
        (!is_false(&predicate)).then_some(Group { predicate, files })
    };
    Ok(by_answers.into_iter().filter_map(group).collect())
}

/// For each part of the predicate, in the order of [`left`]: what the constants make of it, or `None`.
fn ask(predicate: &Predicate, constants: &[(String, ArrayRef)], answers: &mut Vec<Option<bool>>) {
    let answer = answer(predicate, constants);
    answers.push(answer);
    if let (None, Predicate::And(parts) | Predicate::Or(parts)) = (answer, predicate) {
        parts.iter().for_each(|part| ask(part, constants, answers));
    }
}

/// What the constants make of a predicate on no other columns.
fn answer(predicate: &Predicate, constants: &[(String, ArrayRef)]) -> Option<bool> {
    let names = predicate.columns();
    let column = |name: &&str| constants.iter().find(|(known, _)| known == name);
    let columns = names.iter().map(column).collect::<Option<Vec<_>>>()?;
    if columns.is_empty() {
        return None;
    }
    let mut distinct: Vec<(&str, ArrayRef)> = Vec::new();
    for (name, value) in columns {
        if !distinct.iter().any(|(known, _)| known == name) {
            distinct.push((name, Arc::clone(value)));
        }
    }
    let row = RecordBatch::try_from_iter_with_nullable(
        distinct.into_iter().map(|(name, value)| (name, value, true)),
    );
    // A value of another type is an error that whoever reads the file will report.
    let truth = evaluate(predicate, &row.ok()?).ok()?;
    Some(truth.value(0))
}

/// What is left of a predicate with these answers.
fn left(predicate: &Predicate, answers: &mut impl Iterator<Item = Option<bool>>) -> Predicate {
    const TRUE: Predicate = Predicate::And(Vec::new());
    const FALSE: Predicate = Predicate::Or(Vec::new());
    match answers.next().flatten() {
        Some(true) => return TRUE,
        Some(false) => return FALSE,
        None => {}
    }
    match predicate {
        Predicate::And(parts) => {
            let parts = parts.iter().map(|part| left(part, answers));
            let parts: Vec<Predicate> = parts.filter(|part| !is_true(part)).collect();
            if parts.iter().any(is_false) { FALSE } else { Predicate::And(parts) }
        }
        Predicate::Or(parts) => {
            let parts = parts.iter().map(|part| left(part, answers));
            let parts: Vec<Predicate> = parts.filter(|part| !is_false(part)).collect();
            if parts.iter().any(is_true) { TRUE } else { Predicate::Or(parts) }
        }
        other => other.clone(),
    }
}

fn is_true(predicate: &Predicate) -> bool {
    matches!(predicate, Predicate::And(parts) if parts.is_empty())
}

fn is_false(predicate: &Predicate) -> bool {
    matches!(predicate, Predicate::Or(parts) if parts.is_empty())
}
