//! Values in Parquet's plain encoding, as filters hash them.

use super::footer::Physical;

/// A value in its physical type: days, ticks and digits are integers, text is bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is what its name says")]
#[non_exhaustive]
pub enum Plain<'a> {
    Integer(i128),
    Number(f64),
    Bytes(&'a [u8]),
}

impl Physical {
    /// Returns the bytes under which filters of such columns hash a value, in every form that it may have; `None` if no
    /// column of this type holds it, or writers do not agree on the form (booleans, INT96, NaN).
    pub fn plain(self, value: Plain<'_>) -> Option<Vec<Vec<u8>>> {
        match (self, value) {
            (Self::Int32, Plain::Integer(number)) => {
                let signed = i32::try_from(number).map(i32::cast_unsigned);
                let bits = signed.or_else(|_| u32::try_from(number)).ok()?;
                Some(vec![bits.to_le_bytes().to_vec()])
            }
            (Self::Int64, Plain::Integer(number)) => {
                let signed = i64::try_from(number).map(i64::cast_unsigned);
                let bits = signed.or_else(|_| u64::try_from(number)).ok()?;
                Some(vec![bits.to_le_bytes().to_vec()])
            }
            (Self::Float, Plain::Number(number)) => {
                let narrow = number as f32;
                let is_too_large = narrow.is_infinite() && number.is_finite();
                let forms =
                    both_zeros(f64::from(narrow), |form| (form as f32).to_le_bytes().into());
                forms.filter(|_| !is_too_large)
            }
            (Self::Double, Plain::Number(number)) => {
                both_zeros(number, |form| form.to_le_bytes().into())
            }
            (Self::ByteArray | Self::Fixed, Plain::Bytes(bytes)) => Some(vec![bytes.to_vec()]),
            _ => None,
        }
    }
}

/// Encodes both zeros for a zero: they are equal, and a filter has the one that was written. NaN has any number of
/// forms.
fn both_zeros(number: f64, bytes: impl Fn(f64) -> Vec<u8>) -> Option<Vec<Vec<u8>>> {
    match number {
        number if number.is_nan() => None,
        0.0 => Some(vec![bytes(0.0), bytes(-0.0)]),
        number => Some(vec![bytes(number)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_fill_their_physical_type_signed_or_not() {
        let bytes = |of: Physical, number| of.plain(Plain::Integer(number));
        assert_eq!(bytes(Physical::Int32, -1), Some(vec![vec![0xff; 4]]));
        assert_eq!(bytes(Physical::Int32, u32::MAX.into()), Some(vec![vec![0xff; 4]]));
        assert_eq!(bytes(Physical::Int32, 1 << 32), None);
        assert_eq!(bytes(Physical::Int64, 7), Some(vec![vec![7, 0, 0, 0, 0, 0, 0, 0]]));
        assert_eq!(bytes(Physical::Int64, u64::MAX.into()), Some(vec![vec![0xff; 8]]));
        assert_eq!(bytes(Physical::Int64, i128::MIN), None);
        assert_eq!(bytes(Physical::Int96, 7), None);
        assert_eq!(bytes(Physical::Boolean, 1), None);
    }

    #[test]
    fn numbers_are_rounded_to_the_width_and_zeros_are_both() {
        let of = |physical: Physical, number| physical.plain(Plain::Number(number));
        assert_eq!(of(Physical::Float, 0.1), Some(vec![0.1f32.to_le_bytes().to_vec()]));
        assert_eq!(of(Physical::Float, 1e300), None, "no column has it, and infinity is not meant");
        let infinite = f32::INFINITY.to_le_bytes().to_vec();
        assert_eq!(of(Physical::Float, f64::INFINITY), Some(vec![infinite]));
        assert_eq!(of(Physical::Double, -0.0).unwrap().len(), 2);
        assert_eq!(of(Physical::Double, f64::NAN), None);
        // A number that rounds to zero also equals both.
        assert_eq!(of(Physical::Float, 1e-300).unwrap().len(), 2);
    }
}
