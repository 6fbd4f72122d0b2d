//! From a predicate to blocks.
//!
//! A predicate is turned into a plan of fingerprints once, and the plan is run on each segment. What the index cannot
//! answer (a negation, a range) is "any block": under an AND the other columns still narrow it down, and no row is
//! lost.

use crate::blocks::{Blocks, estimate};
use crate::encode::{fingerprint, hash_value};
use crate::error::Error;
use crate::float::in_all_widths;
use crate::postings::List;
use crate::predicate::Predicate;
use crate::schema::{Column, Kind};
use crate::segment::Reader;
use crate::value::Value;

/// What to look up in a segment.
#[derive(Debug)]
pub(crate) enum Plan {
    Any,
    Nothing,
    Is(usize, u32),
    In(usize, Vec<u32>),
    Null(usize),
    And(Vec<Plan>),
    Or(Vec<Plan>),
}

impl Plan {
    pub(crate) fn new(predicate: &Predicate, columns: &[Column]) -> Result<Self, Error> {
        let all = |predicates: &[Predicate]| -> Result<Vec<Self>, Error> {
            predicates.iter().map(|predicate| Self::new(predicate, columns)).collect()
        };
        Ok(match predicate {
            Predicate::Eq(column, value) => {
                let column = find(columns, column)?;
                match prints_of(&columns[column], value)?.as_slice() {
                    [] => Self::Nothing,
                    &[print] => Self::Is(column, print),
                    several => Self::In(column, several.to_vec()),
                }
            }
            Predicate::In(column, values) => {
                let column = find(columns, column)?;
                let prints: Result<Vec<_>, _> =
                    values.iter().map(|value| prints_of(&columns[column], value)).collect();
                let mut prints = prints?.concat();
                prints.sort_unstable();
                prints.dedup();
                Self::In(column, prints)
            }
            Predicate::IsNull(column) => Self::Null(find(columns, column)?),
            Predicate::Range { column, .. } => {
                find(columns, column)?;
                Self::Any
            }
            Predicate::And(parts) => Self::And(all(parts)?),
            Predicate::Or(parts) => Self::Or(all(parts)?),
            Predicate::Not(part) => {
                Self::new(part, columns)?;
                Self::Any
            }
        })
    }

    /// The blocks of a segment where this may hold. `reader` gives the chunk of a column.
    pub(crate) fn blocks<'a>(
        &self,
        blocks: u32,
        reader: &impl Fn(usize) -> Result<Reader<'a>, Error>,
    ) -> Result<Blocks, Error> {
        if let Some(list) = self.list(reader)? {
            return Ok(Blocks::from_list(list));
        }
        match self {
            Self::And(parts) => and(parts, blocks, reader),
            Self::Or(parts) => {
                let sets: Result<Vec<_>, _> =
                    parts.iter().map(|part| part.blocks(blocks, reader)).collect();
                Ok(Blocks::any_of(sets?))
            }
            Self::In(column, prints) => {
                let reader = reader(*column)?;
                let sets = prints.iter().map(|&print| Blocks::from_list(reader.list(print)));
                Ok(Blocks::any_of_many(sets, blocks))
            }
            _ => Ok(Blocks::All),
        }
    }

    /// The list that answers this alone, if there is one.
    fn list<'a>(
        &self,
        reader: &impl Fn(usize) -> Result<Reader<'a>, Error>,
    ) -> Result<Option<List<'a>>, Error> {
        Ok(Some(match self {
            Self::Nothing => List::Empty,
            Self::Is(column, print) => reader(*column)?.list(*print),
            Self::Null(column) => reader(*column)?.nulls(),
            _ => return Ok(None),
        }))
    }
}

/// Starts from the shortest list, reads the others only as far as what is left needs, and stops when nothing is.
fn and<'a>(
    parts: &[Plan],
    blocks: u32,
    reader: &impl Fn(usize) -> Result<Reader<'a>, Error>,
) -> Result<Blocks, Error> {
    fetch(parts, reader);
    let mut lists = Vec::with_capacity(parts.len());
    for part in parts {
        lists.extend(part.list(reader)?);
    }
    lists.sort_by_key(|list| estimate(list, blocks));
    let mut left = Blocks::All;
    for list in lists {
        left = left.and_list(list);
        if left.is_empty() {
            return Ok(left);
        }
    }
    for part in parts {
        if !matches!(part, Plan::Nothing | Plan::Is(..) | Plan::Null(_)) && !left.is_empty() {
            left = left.and(part.blocks(blocks, reader)?);
        }
    }
    Ok(left)
}

/// A lookup waits for memory several times, one after the other. The waits of several columns overlap if all are
/// requested before any is used.
fn fetch<'a>(parts: &[Plan], reader: &impl Fn(usize) -> Result<Reader<'a>, Error>) {
    for stage in 0..2 {
        let mut read = 0;
        for part in parts {
            if let Plan::Is(column, print) = part
                && let Ok(reader) = reader(*column)
            {
                read ^= reader.touch(*print, stage);
            }
        }
        std::hint::black_box(read);
    }
}

fn find(columns: &[Column], name: &str) -> Result<usize, Error> {
    columns.iter().position(|column| column.name == name).ok_or_else(|| Error::NoColumn {
        column: name.to_owned(),
        known: columns.iter().map(|column| column.name.clone()).collect(),
    })
}

/// The fingerprints of a value, which must be of the column's kind: none for null, which nothing equals, and several
/// for a float, which columns of other widths hold rounded. (Which width a table has is known only when it is open. A
/// column of nulls has no kind, and no fingerprints to find.)
fn prints_of(column: &Column, value: &Value) -> Result<Vec<u32>, Error> {
    match Kind::of_value(value) {
        Some(kind) if kind != column.kind && column.kind != Kind::Null => Err(Error::Kind {
            column: column.name.clone(),
            expected: column.kind,
            found: kind.to_string(),
        }),
        _ => Ok(fingerprints(value)),
    }
}

/// All fingerprints that a value may have in a column of its kind, ascending.
pub(crate) fn fingerprints(value: &Value) -> Vec<u32> {
    let print = |value: &Value| hash_value(value).map(fingerprint);
    let mut prints: Vec<u32> = match value {
        Value::Float(number) => {
            in_all_widths(*number).filter_map(|number| print(&Value::Float(number))).collect()
        }
        other => print(other).into_iter().collect(),
    };
    prints.sort_unstable();
    prints.dedup();
    prints
}
