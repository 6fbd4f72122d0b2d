//! Converts literals to values of their column's type.

use std::ops::Bound;

use arrow::datatypes::{DataType, Schema};

use super::moment::Wrong;
use super::number::{self, Parsed};
use super::{Comparison, Condition, ConditionError, Literal, moment};
use crate::similar::similar;
use crate::zone::LocalTime;
use crate::{Pattern, Predicate, Value};

type Typed<T> = Result<T, ConditionError>;

pub(super) fn typed(condition: &Condition, schema: &Schema) -> Typed<Predicate> {
    let all = |parts: &[Condition]| -> Typed<Vec<_>> {
        parts.iter().map(|part| typed(part, schema)).collect()
    };
    Ok(match condition {
        Condition::And(parts) => Predicate::And(all(parts)?),
        Condition::Or(parts) => Predicate::Or(all(parts)?),
        Condition::Not(part) => Predicate::Not(Box::new(typed(part, schema)?)),
        Condition::IsNull(name) => Predicate::IsNull(Column::find(name, schema)?.name.into()),
        Condition::Like(name, pattern) => like(Column::find(name, schema)?, pattern)?,
        Condition::In(name, literals) => {
            let column = Column::find(name, schema)?;
            // No integer is a fraction.
            let whole = literals.iter().filter(|literal| column.fraction(literal).is_none());
            let values = whole.map(|literal| column.value(literal)).collect::<Typed<Vec<_>>>()?;
            match literals.iter().find_map(|literal| column.fraction(literal)) {
                Some(floor) if values.is_empty() => column.between(floor),
                _ => Predicate::In(column.name.into(), values),
            }
        }
        Condition::Between(name, low, high) => {
            let column = Column::find(name, schema)?;
            Predicate::Range {
                column: name.clone(),
                low: column.low(low, Bound::Included)?,
                high: column.high(high, Bound::Included)?,
            }
        }
        Condition::Compare(name, comparison, literal) => {
            compare(Column::find(name, schema)?, *comparison, literal)?
        }
    })
}

fn compare(column: Column<'_>, comparison: Comparison, literal: &Literal) -> Typed<Predicate> {
    let name = column.name.to_owned();
    let (low, high) = match comparison {
        Comparison::Equal => return column.equal(literal),
        Comparison::NotEqual => return Ok(Predicate::Not(Box::new(column.equal(literal)?))),
        Comparison::Less => (Bound::Unbounded, column.high(literal, Bound::Excluded)?),
        Comparison::LessOrEqual => (Bound::Unbounded, column.high(literal, Bound::Included)?),
        Comparison::Greater => (column.low(literal, Bound::Excluded)?, Bound::Unbounded),
        Comparison::GreaterOrEqual => (column.low(literal, Bound::Included)?, Bound::Unbounded),
    };
    Ok(Predicate::Range { column: name, low, high })
}

fn like(column: Column<'_>, pattern: &Pattern) -> Typed<Predicate> {
    // What has no wildcards is one value, which the index finds as such.
    let text = Literal::Text(pattern.only().unwrap_or(pattern.prefix()).to_owned());
    let value = column.value(&text);
    match value {
        Ok(value @ (Value::Text(_) | Value::Bytes(_))) if pattern.only().is_some() => {
            Ok(Predicate::Eq(column.name.to_owned(), value))
        }
        Ok(Value::Text(_) | Value::Bytes(_) | Value::Null) => {
            Ok(Predicate::Like(column.name.to_owned(), pattern.clone()))
        }
        Err(error @ ConditionError::Incomparable { .. }) => Err(error),
        _ => Err(column.misfit(&Literal::Text(pattern.to_string()))),
    }
}

/// A column and what its values mean: of a dictionary, the values in it.
#[derive(Clone, Copy)]
struct Column<'a> {
    name: &'a str,
    data_type: &'a DataType,
}

impl<'a> Column<'a> {
    fn find(name: &'a str, schema: &'a Schema) -> Typed<Self> {
        let Ok(field) = schema.field_with_name(name) else {
            let similar = similar(name, schema.fields().iter().map(|field| field.name()));
            return Err(ConditionError::UnknownColumn { column: name.into(), similar });
        };
        let data_type = match field.data_type() {
            DataType::Dictionary(_, values) => values.as_ref(),
            other => other,
        };
        Ok(Self { name, data_type })
    }

    fn value(self, literal: &Literal) -> Typed<Value> {
        if !is_comparable(self.data_type) {
            let (column, data_type) = (self.name.into(), self.data_type.clone());
            return Err(ConditionError::Incomparable { column, data_type });
        }
        if let (DataType::Timestamp(_, zone), Literal::Text(text)) = (self.data_type, literal) {
            let moment = moment::nanoseconds(text, zone.as_deref());
            return moment.map(Value::Timestamp).map_err(|wrong| self.no_moment(literal, wrong));
        }
        value(self.data_type, literal).ok_or_else(|| self.misfit(literal))
    }

    fn misfit(self, literal: &Literal) -> ConditionError {
        let (column, data_type) = (self.name.into(), self.data_type.clone());
        ConditionError::Type { column, data_type, literal: literal.clone() }
    }

    fn no_moment(self, literal: &Literal, wrong: Wrong) -> ConditionError {
        let why = match wrong {
            Wrong::Text => return self.misfit(literal),
            Wrong::Zone => "is in an unknown time zone; give an offset such as +02:00",
            Wrong::Local(LocalTime::Twice) => {
                "was shown twice, when clocks were put back; give an offset such as +02:00"
            }
            Wrong::Local(LocalTime::Skipped) => "was skipped, when clocks were put forward",
        };
        let (column, data_type) = (self.name.into(), self.data_type.clone());
        ConditionError::Moment { column, data_type, literal: literal.clone(), why }
    }

    fn equal(self, literal: &Literal) -> Typed<Predicate> {
        match self.fraction(literal) {
            Some(floor) => Ok(self.between(floor)),
            None => Ok(Predicate::Eq(self.name.to_owned(), self.value(literal)?)),
        }
    }

    /// A range between this integer and the next: no integer is in it, and for null it is unknown.
    fn between(self, floor: i128) -> Predicate {
        let next = floor.saturating_add(1);
        let (low, high) = (Bound::Excluded(Value::Int(floor)), Bound::Excluded(Value::Int(next)));
        Predicate::Range { column: self.name.to_owned(), low, high }
    }

    /// A lower bound. Above 1.5 begins, in a column of integers, above 1.
    fn low(self, literal: &Literal, bound: fn(Value) -> Bound<Value>) -> Typed<Bound<Value>> {
        match self.fraction(literal) {
            Some(floor) => Ok(Bound::Excluded(Value::Int(floor))),
            None => self.value(literal).map(bound),
        }
    }

    /// An upper bound. Below 1.5 ends, in a column of integers, with 1.
    fn high(self, literal: &Literal, bound: fn(Value) -> Bound<Value>) -> Typed<Bound<Value>> {
        match self.fraction(literal) {
            Some(floor) => Ok(Bound::Included(Value::Int(floor))),
            None => self.value(literal).map(bound),
        }
    }

    /// The integer below, if the literal lies between two and the column has only integers.
    fn fraction(self, literal: &Literal) -> Option<i128> {
        let (Literal::Number(digits) | Literal::Text(digits)) = literal else { return None };
        match number::parse(digits) {
            Parsed::Exact(exact) if self.data_type.is_integer() && !exact.is_integer() => {
                Some(exact.floor())
            }
            _ => None,
        }
    }
}

fn is_comparable(data_type: &DataType) -> bool {
    use DataType as D;
    data_type.is_integer()
        || data_type.is_floating()
        || data_type.is_decimal()
        || matches!(
            data_type,
            D::Null
                | D::Boolean
                | D::Utf8
                | D::LargeUtf8
                | D::Utf8View
                | D::Binary
                | D::LargeBinary
                | D::BinaryView
                | D::FixedSizeBinary(_)
                | D::Date32
                | D::Date64
                | D::Timestamp(..)
        )
}

/// The value that a literal is in a column of this type; `None` if it is not one. A quoted literal may be any type that
/// it can be parsed as; an unquoted number is never taken for text.
fn value(data_type: &DataType, literal: &Literal) -> Option<Value> {
    use DataType as D;
    match (data_type, literal) {
        (D::Boolean, Literal::Bool(value)) => Some(Value::Bool(*value)),
        (D::Boolean, Literal::Text(text)) => text.to_lowercase().parse().ok().map(Value::Bool),
        (D::Utf8 | D::LargeUtf8 | D::Utf8View, Literal::Text(text)) => {
            Some(Value::Text(text.clone()))
        }
        (D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_), literal) => {
            match literal {
                Literal::Bytes(bytes) => Some(Value::Bytes(bytes.clone())),
                // Writers that do not say that bytes are text are common.
                Literal::Text(text) => Some(Value::Bytes(text.clone().into_bytes())),
                _ => None,
            }
        }
        (D::Date32 | D::Date64, Literal::Text(text)) => moment::days(text).map(Value::Date),
        // All values are null, and none of them is equal to anything.
        (D::Null, _) => Some(Value::Null),
        (of, Literal::Number(text) | Literal::Text(text)) if of.is_integer() => integer(text),
        // Rounded to the width of each column it is compared with.
        (of, Literal::Number(text) | Literal::Text(text)) if of.is_floating() => {
            text.parse().ok().map(Value::Float)
        }
        (of, Literal::Number(text) | Literal::Text(text)) if of.is_decimal() => decimal(text),
        _ => None,
    }
}

fn integer(text: &str) -> Option<Value> {
    match number::parse(text) {
        Parsed::Exact(exact) => exact.is_integer().then(|| Value::Int(exact.floor())),
        // Beyond every type, like the ends of 128 bits.
        Parsed::TooLong { negative: true } => Some(Value::Int(i128::MIN)),
        Parsed::TooLong { negative: false } => Some(Value::Int(i128::MAX)),
        Parsed::NotANumber => None,
    }
}

fn decimal(text: &str) -> Option<Value> {
    match number::parse(text) {
        Parsed::Exact(exact) => {
            Some(Value::Decimal { digits: exact.digits, scale: i8::try_from(exact.scale).ok()? })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use arrow::datatypes::{Field, TimeUnit};

    fn schema() -> Schema {
        let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        let list = DataType::List(Field::new("item", DataType::Int32, true).into());
        Schema::new(vec![
            Field::new("i3", DataType::Int64, true),
            Field::new("u", DataType::UInt8, true),
            Field::new("f", DataType::Float32, true),
            Field::new("h", DataType::Float16, true),
            Field::new("name", DataType::LargeUtf8, true),
            Field::new("tag", dictionary, true),
            Field::new("raw", DataType::FixedSizeBinary(2), true),
            Field::new("ok", DataType::Boolean, true),
            Field::new("day", DataType::Date32, true),
            Field::new("at", DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())), true),
            Field::new("price", DataType::Decimal128(10, 2), true),
            Field::new("list", list, true),
        ])
    }

    fn value_of(text: &str) -> Value {
        match parse(text, &schema()) {
            Ok(Predicate::Eq(_, value)) => value,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn literals_take_the_type_of_their_column() {
        let cases = [
            ("i3 = 306047", Value::Int(306_047)),
            ("i3 = -1e3", Value::Int(-1000)),
            ("i3 = 2.0", Value::Int(2)),
            ("i3 = '7'", Value::Int(7)),
            ("u = 300", Value::Int(300)),
            ("u = 1e99", Value::Int(i128::MAX)),
            ("f = 0.1", Value::Float(0.1)),
            ("h = 0.5", Value::Float(0.5)),
            ("f = 'NaN'", Value::Float(f64::NAN)),
            ("name = '7'", Value::Text("7".into())),
            ("tag = 'x'", Value::Text("x".into())),
            ("raw = x'00ff'", Value::Bytes(vec![0, 255])),
            ("raw = 'ab'", Value::Bytes(b"ab".to_vec())),
            ("ok = true", Value::Bool(true)),
            ("day = '1970-01-02'", Value::Date(1)),
            ("at = '1970-01-01T00:00:01+00:00'", Value::Timestamp(1_000_000_000)),
            ("price = 1.50", Value::Decimal { digits: 15, scale: 1 }),
            ("price = 100", Value::Decimal { digits: 1, scale: -2 }),
        ];
        for (text, wanted) in cases {
            let found = value_of(text);
            let both_nan = matches!((&found, &wanted), (Value::Float(a), Value::Float(b)) if a.is_nan() && b.is_nan());
            assert!(both_nan || found == wanted, "{text}: {found:?}, not {wanted:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_column_type_and_literal() {
        let cases = [
            ("i3 = 'abc'", "column i3 is Int64, which 'abc' is not"),
            ("name = 5", "column name is LargeUtf8, which 5 is not"),
            ("ok = 1", "column ok is Boolean, which 1 is not"),
            ("day = '2024-02-30'", "column day is Date32, which '2024-02-30' is not"),
            ("price = 'x'", "column price is Decimal128(10, 2), which 'x' is not"),
            ("tag in ('a', x'00')", "column tag is Utf8, which x'00' is not"),
            ("i4 = 1", "no column i4; did you mean i3?"),
            ("whatever is null", "no column whatever"),
        ];
        for (text, message) in cases {
            assert_eq!(parse(text, &schema()).unwrap_err().to_string(), message);
        }
        let error = parse("list = 1", &schema()).unwrap_err();
        assert!(matches!(error, ConditionError::Incomparable { .. }), "{error}");
        assert!(parse("list is null", &schema()).is_ok());
    }

    #[test]
    fn bounds_of_integers_may_be_fractions() {
        let range = |text| match parse(text, &schema()) {
            Ok(Predicate::Range { low, high, .. }) => (low, high),
            other => panic!("{other:?}"),
        };
        let int = Value::Int;
        assert_eq!(range("i3 < 1.5"), (Bound::Unbounded, Bound::Included(int(1))));
        assert_eq!(range("i3 <= -1.5"), (Bound::Unbounded, Bound::Included(int(-2))));
        assert_eq!(range("i3 > 1.5"), (Bound::Excluded(int(1)), Bound::Unbounded));
        // Nothing, and its negation is everything that is not null.
        let nothing = (Bound::Excluded(int(1)), Bound::Excluded(int(2)));
        assert_eq!(range("i3 = 1.5"), nothing);
        assert_eq!(range("i3 in (1.5, '1.25')"), nothing);
        let mixed = Predicate::In("i3".into(), vec![int(2)]);
        assert_eq!(parse("i3 in (1.5, 2)", &schema()), Ok(mixed));
        assert_eq!(range("i3 >= 1"), (Bound::Included(int(1)), Bound::Unbounded));
        assert_eq!(
            range("i3 between 0.5 and 2"),
            (Bound::Excluded(int(0)), Bound::Included(int(2)))
        );
    }
}
