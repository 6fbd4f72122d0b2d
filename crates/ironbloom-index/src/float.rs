//! Floats of several widths: which of them does a number mean?
//!
//! **A number is asked of every column in the column's own width**: it is rounded as the column's values were when they
//! were written. So `x = 0.1` finds 0.1 in a column of `Float32` (which holds 0.100000001…) and in one of `Float64`, and
//! files of an index may differ in width. A number too large for a width is not rounded to infinity: it equals nothing
//! there, and lies between the largest number and infinity.

use arrow::array::ArrowPrimitiveType;
use arrow::datatypes::{DataType, Float16Type};

type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// The types that hold floats, the widest first.
const WIDTHS: [DataType; 3] = [DataType::Float64, DataType::Float32, DataType::Float16];

/// What a column of this type makes of a number.
pub(crate) fn rounded(number: f64, width: &DataType) -> f64 {
    let rounded = match width {
        DataType::Float16 => Half::from_f64(number).to_f64(),
        DataType::Float32 => f64::from(number as f32),
        _ => number,
    };
    if rounded.is_infinite() { number } else { rounded }
}

/// What columns of any width make of a number.
pub(crate) fn in_all_widths(number: f64) -> impl Iterator<Item = f64> {
    WIDTHS.iter().map(move |width| rounded(number, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_rounded_to_the_width_and_never_to_infinity() {
        assert_eq!(rounded(0.1, &DataType::Float64), 0.1);
        assert_eq!(rounded(0.1, &DataType::Float32), f64::from(0.1f32));
        assert_eq!(rounded(0.1, &DataType::Float16), 0.0999755859375);
        assert_eq!(rounded(1e300, &DataType::Float32), 1e300);
        assert_eq!(rounded(70_000.0, &DataType::Float16), 70_000.0);
        assert_eq!(rounded(f64::NEG_INFINITY, &DataType::Float16), f64::NEG_INFINITY);
        assert!(rounded(f64::NAN, &DataType::Float32).is_nan());
    }
}
