//! From a predicate on columns with names and values to a lookup of fingerprints.

use ironbloom_blocks::encode::{fingerprint, hash_value};
use ironbloom_blocks::{Lookup, Value, ValueKind};

use crate::error::Error;
use crate::float::in_all_widths;
use crate::predicate::Predicate;
use crate::schema::Column;

/// What a predicate looks up in an index with these columns.
pub(crate) fn lookup(predicate: &Predicate, columns: &[Column]) -> Result<Lookup, Error> {
    let all = |predicates: &[Predicate]| -> Result<Vec<Lookup>, Error> {
        predicates.iter().map(|predicate| lookup(predicate, columns)).collect()
    };
    Ok(match predicate {
        Predicate::Eq(column, value) => {
            let column = find(columns, column)?;
            match prints_of(&columns[column], value)?.as_slice() {
                [] => Lookup::Nothing,
                &[print] => Lookup::Is(column, print),
                several => Lookup::In(column, several.to_vec()),
            }
        }
        Predicate::In(column, values) => {
            let column = find(columns, column)?;
            let prints: Result<Vec<_>, _> =
                values.iter().map(|value| prints_of(&columns[column], value)).collect();
            let mut prints = prints?.concat();
            prints.sort_unstable();
            prints.dedup();
            Lookup::In(column, prints)
        }
        Predicate::IsNull(column) => Lookup::Null(find(columns, column)?),
        Predicate::Range { column, .. } => {
            find(columns, column)?;
            Lookup::Any
        }
        Predicate::And(parts) => Lookup::And(all(parts)?),
        Predicate::Or(parts) => Lookup::Or(all(parts)?),
        Predicate::Not(part) => {
            lookup(part, columns)?;
            Lookup::Any
        }
    })
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
    match ValueKind::of_value(value) {
        Some(kind) if kind != column.kind && column.kind != ValueKind::Null => Err(Error::Kind {
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
