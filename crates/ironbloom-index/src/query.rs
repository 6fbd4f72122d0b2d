//! From a predicate on columns with names and values to a lookup of fingerprints and spans.
//!
//! `not` is moved to the comparisons first (De Morgan's laws hold for SQL's three values, too): `not (x < 5)` is `x >= 5`, and
//! what has no better answer (`x != 5`) is true only where there is a value.

use std::ops::Bound;

use ironbloom_blocks::bounds::{Image, Span};
use ironbloom_blocks::encode::{fingerprint, hash_value};
use ironbloom_blocks::{Key, Lookup, Value, ValueKind};

use crate::error::Error;
use crate::float::in_all_widths;
use crate::predicate::Predicate;
use crate::schema::Column;

/// What a column that is not in the index means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    IsAnError,
    /// Any block may match.
    IsAnything,
}

/// What a predicate looks up in an index with these columns.
pub(crate) fn lookup(
    predicate: &Predicate,
    columns: &[Column],
    unknown: Unknown,
) -> Result<Lookup, Error> {
    Query { columns, unknown }.lookup(predicate, false)
}

struct Query<'a> {
    columns: &'a [Column],
    unknown: Unknown,
}

impl Query<'_> {
    fn lookup(&self, predicate: &Predicate, negated: bool) -> Result<Lookup, Error> {
        let name = match predicate {
            Predicate::And(parts) | Predicate::Or(parts) => {
                let parts = parts.iter().map(|part| self.lookup(part, negated));
                let parts = parts.collect::<Result<_, _>>()?;
                let is_and = matches!(predicate, Predicate::And(_)) != negated;
                return Ok(if is_and { Lookup::And(parts) } else { Lookup::Or(parts) });
            }
            Predicate::Not(part) => return self.lookup(part, !negated),
            Predicate::Eq(name, _)
            | Predicate::In(name, _)
            | Predicate::IsNull(name)
            | Predicate::Range { column: name, .. }
            | Predicate::Like(name, _) => name,
        };
        match self.columns.iter().position(|column| column.name == *name) {
            Some(number) if negated => self.negation(number, predicate),
            Some(number) => self.comparison(number, predicate),
            None if self.unknown == Unknown::IsAnything => Ok(Lookup::Any),
            None => Err(Error::NoColumn {
                column: name.clone(),
                known: self.columns.iter().map(|column| column.name.clone()).collect(),
            }),
        }
    }

    fn comparison(&self, number: usize, predicate: &Predicate) -> Result<Lookup, Error> {
        let column = &self.columns[number];
        Ok(match predicate {
            Predicate::Eq(_, value) => {
                check_kind(column, value)?;
                match keys_of(value).as_slice() {
                    [] => Lookup::Nothing,
                    &[key] => Lookup::Is(number, key),
                    several => Lookup::In(number, several.to_vec()),
                }
            }
            Predicate::In(_, values) => {
                values.iter().try_for_each(|value| check_kind(column, value))?;
                let mut keys: Vec<Key> = values.iter().flat_map(keys_of).collect();
                keys.sort_unstable();
                keys.dedup();
                Lookup::In(number, keys)
            }
            Predicate::IsNull(_) => Lookup::Null(number),
            Predicate::Range { low, high, .. } => {
                check_bounds(column, low, high)?;
                match (first_image(low, column.kind), last_image(high, column.kind)) {
                    (Some(low), Some(high)) => Lookup::Between(number, Span { low, high }),
                    _ => Lookup::Nothing,
                }
            }
            Predicate::Like(_, pattern) => {
                check_pattern(column)?;
                Lookup::Between(number, Span::of_prefix(pattern.prefix().as_bytes()))
            }
            Predicate::And(_) | Predicate::Or(_) | Predicate::Not(_) => Lookup::Any,
        })
    }

    /// Where a comparison may be false, not unknown: there must be a value.
    fn negation(&self, number: usize, predicate: &Predicate) -> Result<Lookup, Error> {
        let column = &self.columns[number];
        let has_value = Lookup::Between(number, Span::ALL);
        Ok(match predicate {
            Predicate::Eq(_, value) => {
                check_kind(column, value)?;
                has_value
            }
            Predicate::In(_, values) => {
                values.iter().try_for_each(|value| check_kind(column, value))?;
                // Nothing is in an empty list, not even null.
                if values.is_empty() { Lookup::Any } else { has_value }
            }
            Predicate::Range { low, high, .. } => {
                check_bounds(column, low, high)?;
                let below = last_image(&flipped(low), column.kind);
                let above = first_image(&flipped(high), column.kind);
                let below = below.filter(|_| *low != Bound::Unbounded);
                let above = above.filter(|_| *high != Bound::Unbounded);
                let below = below.map(|high| Span { low: Image::MIN, high });
                let above = above.map(|low| Span { low, high: Image::MAX });
                let spans = [below, above].into_iter().flatten();
                Lookup::Or(spans.map(|span| Lookup::Between(number, span)).collect())
            }
            Predicate::Like(..) => {
                check_pattern(column)?;
                has_value
            }
            _ => has_value,
        })
    }
}

/// The other side of a bound.
fn flipped(bound: &Bound<Value>) -> Bound<Value> {
    match bound {
        Bound::Included(value) => Bound::Excluded(value.clone()),
        Bound::Excluded(value) => Bound::Included(value.clone()),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// A value must be of the column's kind; a column of nulls has none, and null fits every column.
fn check_kind(column: &Column, value: &Value) -> Result<(), Error> {
    match ValueKind::of_value(value) {
        Some(kind) if kind != column.kind && column.kind != ValueKind::Null => {
            Err(misfit(column, kind.to_string()))
        }
        _ => Ok(()),
    }
}

fn check_bounds(column: &Column, low: &Bound<Value>, high: &Bound<Value>) -> Result<(), Error> {
    let values = [low, high].into_iter().filter_map(|bound| match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value),
        Bound::Unbounded => None,
    });
    values.into_iter().try_for_each(|value| check_kind(column, value))
}

fn check_pattern(column: &Column) -> Result<(), Error> {
    match column.kind {
        ValueKind::Text | ValueKind::Bytes | ValueKind::Null => Ok(()),
        _ => Err(misfit(column, "a pattern".to_owned())),
    }
}

fn misfit(column: &Column, found: String) -> Error {
    Error::Kind { column: column.name.clone(), expected: column.kind, found }
}

/// The images that a value may have in a column of its kind: several for a float, which columns of other widths hold
/// rounded. (Which width a table has is known only when it is open.) None for null, which nothing equals.
fn images(value: &Value) -> impl Iterator<Item = Image> {
    in_forms(value).into_iter().filter_map(|form| Image::of_value(&form))
}

/// A value as columns of its kind may hold it.
fn in_forms(value: &Value) -> Vec<Value> {
    match value {
        Value::Float(number) => in_all_widths(*number).map(Value::Float).collect(),
        other => vec![other.clone()],
    }
}

/// Whether different values always have different images.
fn is_exact(kind: ValueKind) -> bool {
    matches!(kind, ValueKind::Bool | ValueKind::Int | ValueKind::Date | ValueKind::Timestamp)
}

/// The first image that a value above a bound may have; `None` if no value is.
fn first_image(low: &Bound<Value>, kind: ValueKind) -> Option<Image> {
    match low {
        Bound::Unbounded => Some(Image::MIN),
        Bound::Excluded(value) if is_exact(kind) => {
            images(value).min()?.0.checked_add(1).map(Image)
        }
        Bound::Included(value) | Bound::Excluded(value) => images(value).min(),
    }
}

/// The last image that a value below a bound may have; `None` if no value is.
fn last_image(high: &Bound<Value>, kind: ValueKind) -> Option<Image> {
    match high {
        Bound::Unbounded => Some(Image::MAX),
        Bound::Excluded(value) if is_exact(kind) => {
            images(value).max()?.0.checked_sub(1).map(Image)
        }
        Bound::Included(value) | Bound::Excluded(value) => images(value).max(),
    }
}

/// All keys that a value may have in a column of its kind, ascending.
fn keys_of(value: &Value) -> Vec<Key> {
    let key = |form: Value| {
        Some(Key { image: Image::of_value(&form)?, print: fingerprint(hash_value(&form)?) })
    };
    let mut keys: Vec<Key> = in_forms(value).into_iter().filter_map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// All fingerprints that a value may have in a column of its kind, each once.
pub(crate) fn fingerprints(value: &Value) -> Vec<u32> {
    let mut prints: Vec<u32> = keys_of(value).into_iter().map(|key| key.print).collect();
    prints.sort_unstable();
    prints.dedup();
    prints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    fn of(predicate: Predicate) -> Lookup {
        let column = |name: &str, kind| Column { name: name.into(), kind };
        let columns = [column("x", ValueKind::Int), column("t", ValueKind::Text)];
        lookup(&predicate, &columns, Unknown::IsAnError).unwrap()
    }

    fn range(low: Bound<i128>, high: Bound<i128>) -> Predicate {
        let column = "x".to_owned();
        Predicate::Range { column, low: low.map(Value::Int), high: high.map(Value::Int) }
    }

    fn between(low: Image, high: Image) -> Lookup {
        Lookup::Between(0, Span { low, high })
    }

    #[test]
    fn negations_move_to_the_comparisons() {
        let not = |predicate| Predicate::Not(Box::new(predicate));
        let int = Image::of_int;
        let five = || range(Bound::Included(5), Bound::Excluded(9));
        assert_eq!(of(five()), between(int(5), int(8)));
        let outside = [between(Image::MIN, int(4)), between(int(9), Image::MAX)];
        assert_eq!(of(not(five())), Lookup::Or(outside.to_vec()));
        assert_eq!(of(not(not(five()))), of(five()));
        let has_value = between(Image::MIN, Image::MAX);
        let is_null = || Predicate::IsNull("x".into());
        let both = not(Predicate::Or(vec![is_null(), five()]));
        let parts = vec![has_value.clone(), Lookup::Or(outside.to_vec())];
        assert_eq!(of(both), Lookup::And(parts));
        assert_eq!(of(not(Predicate::In("x".into(), vec![]))), Lookup::Any);
        assert_eq!(of(not(Predicate::Eq("x".into(), Value::Int(5)))), has_value);
        assert_eq!(of(not(range(Bound::Unbounded, Bound::Unbounded))), Lookup::Or(vec![]));
    }

    #[test]
    fn what_no_value_satisfies_looks_up_nothing() {
        let nothing_above = range(Bound::Excluded(i128::MAX), Bound::Unbounded);
        assert_eq!(of(nothing_above), Lookup::Nothing);
        let null = Predicate::Range {
            column: "x".into(),
            low: Bound::Included(Value::Null),
            high: Bound::Unbounded,
        };
        assert_eq!(of(null), Lookup::Nothing);
    }

    #[test]
    fn a_pattern_is_the_span_of_its_prefix() {
        let like = Predicate::Like("t".into(), Pattern::new("ab%c", None).unwrap());
        assert_eq!(of(like), Lookup::Between(1, Span::of_prefix(b"ab")));
    }
}
