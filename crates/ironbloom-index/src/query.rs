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

/// Where a predicate may be false or unknown: in a block that this does not find, every row satisfies it. [`Lookup::Any`] if that
/// is not known of any block.
pub(crate) fn lookup_of_misses(predicate: &Predicate, columns: &[Column]) -> Result<Lookup, Error> {
    Query { columns, unknown: Unknown::IsAnything }.misses(predicate, false)
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
                let bound = Bound::Included(value.clone());
                if is_exact(column.kind) { self.outside(number, &bound, &bound) } else { has_value }
            }
            Predicate::In(_, values) => {
                values.iter().try_for_each(|value| check_kind(column, value))?;
                // Nothing is in an empty list, not even null.
                if values.is_empty() { Lookup::Any } else { has_value }
            }
            Predicate::Range { low, high, .. } => {
                check_bounds(column, low, high)?;
                self.outside(number, low, high)
            }
            Predicate::Like(..) => {
                check_pattern(column)?;
                has_value
            }
            _ => has_value,
        })
    }

    /// Where a value may lie on the other side of a bound.
    fn outside(&self, number: usize, low: &Bound<Value>, high: &Bound<Value>) -> Lookup {
        let kind = self.columns[number].kind;
        let below = last_image(&flipped(low), kind).filter(|_| *low != Bound::Unbounded);
        let above = first_image(&flipped(high), kind).filter(|_| *high != Bound::Unbounded);
        let below = below.map(|high| Span { low: Image::MIN, high });
        let above = above.map(|low| Span { low, high: Image::MAX });
        let spans = [below, above].into_iter().flatten();
        Lookup::Or(spans.map(|span| Lookup::Between(number, span)).collect())
    }

    /// Where a predicate, or its negation, may be false or unknown.
    fn misses(&self, predicate: &Predicate, negated: bool) -> Result<Lookup, Error> {
        let column = match predicate {
            Predicate::And(parts) | Predicate::Or(parts) => {
                let parts = parts.iter().map(|part| self.misses(part, negated));
                let mut parts = parts.collect::<Result<Vec<_>, _>>()?;
                if matches!(predicate, Predicate::And(_)) != negated {
                    let is_any = parts.contains(&Lookup::Any);
                    return Ok(if is_any { Lookup::Any } else { Lookup::Or(parts) });
                }
                parts.retain(|part| *part != Lookup::Any);
                return Ok(if parts.is_empty() { Lookup::Any } else { Lookup::And(parts) });
            }
            Predicate::Not(part) => return self.misses(part, !negated),
            // Never unknown.
            Predicate::IsNull(_) => return self.lookup(predicate, !negated),
            // Of these, an index knows where they may hold, not where they always do.
            Predicate::In(..) | Predicate::Like(..) => return Ok(Lookup::Any),
            Predicate::Eq(column, _) | Predicate::Range { column, .. } => column,
        };
        let number = self.columns.iter().position(|known| known.name == *column);
        let number = number.filter(|&number| self.columns[number].kind != ValueKind::Null);
        match number {
            Some(number) if !compares_with_null(predicate) => {
                let other = self.lookup(predicate, !negated)?;
                Ok(Lookup::Or(vec![other, Lookup::Null(number)]))
            }
            _ => Ok(Lookup::Any),
        }
    }
}

/// True if it may be unknown where the column is not null.
fn compares_with_null(predicate: &Predicate) -> bool {
    let is_null = |bound: &Bound<Value>| {
        matches!(bound, Bound::Included(Value::Null) | Bound::Excluded(Value::Null))
    };
    match predicate {
        Predicate::Eq(_, value) => *value == Value::Null,
        Predicate::Range { low, high, .. } => is_null(low) || is_null(high),
        _ => false,
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
        let other = [between(Image::MIN, int(4)), between(int(6), Image::MAX)];
        assert_eq!(of(not(Predicate::Eq("x".into(), Value::Int(5)))), Lookup::Or(other.to_vec()));
        let text = Predicate::Eq("t".into(), Value::Text("a".into()));
        assert_eq!(of(not(text)), Lookup::Between(1, Span::ALL));
        assert_eq!(of(not(range(Bound::Unbounded, Bound::Unbounded))), Lookup::Or(vec![]));
    }

    #[test]
    fn a_predicate_is_missed_where_it_is_false_or_unknown() {
        let column = |name: &str, kind| Column { name: name.into(), kind };
        let columns = [column("x", ValueKind::Int), column("t", ValueKind::Null)];
        let misses = |predicate: &Predicate| lookup_of_misses(predicate, &columns).unwrap();
        let below = || range(Bound::Unbounded, Bound::Excluded(5));
        let from_five = Lookup::Or(vec![between(Image::of_int(5), Image::MAX)]);
        let below_five = between(Image::MIN, Image::of_int(4));
        let or_null = |found: Lookup| Lookup::Or(vec![found, Lookup::Null(0)]);
        assert_eq!(misses(&below()), or_null(from_five.clone()));
        let not = |predicate| Predicate::Not(Box::new(predicate));
        assert_eq!(misses(&not(below())), or_null(below_five));
        assert_eq!(misses(&Predicate::IsNull("x".into())), between(Image::MIN, Image::MAX));
        assert_eq!(misses(&not(Predicate::IsNull("x".into()))), Lookup::Null(0));
        // Unknown for every row, and of columns of which nothing is known.
        let null = Predicate::Range {
            column: "x".into(),
            low: Bound::Included(Value::Null),
            high: Bound::Unbounded,
        };
        let others = [
            Predicate::Eq("x".into(), Value::Null),
            null.clone(),
            not(null),
            Predicate::Eq("t".into(), Value::Int(1)),
            Predicate::Eq("other".into(), Value::Int(1)),
            Predicate::In("x".into(), vec![Value::Int(1)]),
            Predicate::Or(vec![]),
        ];
        for other in others {
            assert_eq!(misses(&other), Lookup::Any, "{other:?}");
            let both = Predicate::And(vec![below(), other.clone()]);
            assert_eq!(misses(&both), Lookup::Any, "{both:?}");
            let either = Predicate::Or(vec![below(), other]);
            assert_eq!(misses(&either), Lookup::And(vec![or_null(from_five.clone())]));
        }
        assert_eq!(misses(&Predicate::And(vec![])), Lookup::Or(vec![]));
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
