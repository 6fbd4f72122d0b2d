//! Images of values: 128-bit numbers in the same order.
//!
//! ```text
//!  kind         image
//!  boolean      0, 1
//!  integer      the number, its sign bit flipped: any width, signed or not
//!  float        the bits of the f64 it widens to, in order; one NaN above everything, one zero
//!  date         days since 1970, as integers
//!  timestamp    nanoseconds since 1970, as integers
//!  decimal      the number of units of 10^-18, rounded down, as integers; the ends stand for anything beyond
//!  text, bytes  the first 16 bytes, padded with zeros
//! ```
//!
//! If a ≤ b, the image of a is at most that of b; different values may share an image. So a conclusion from images (no
//! value of this block is below x) holds for values, for every type of one kind, as in [`encode`](crate::encode).
//! Images are part of the file format: they never change within a version.

use crate::value::Value;

/// The position of a value among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Image(pub u128);

const SIGN: u128 = 1 << 127;
/// Decimal places kept in images of decimals.
const PLACES: i32 = 18;
/// Bytes kept in images of text.
const BYTES: usize = 16;

impl Image {
    /// The lowest image.
    pub const MIN: Self = Self(0);
    /// The highest image.
    pub const MAX: Self = Self(u128::MAX);

    /// The image of an integer, a day or a moment.
    #[inline]
    pub fn of_int(number: i128) -> Self {
        Self(number.cast_unsigned() ^ SIGN)
    }

    /// The image of a float.
    #[inline]
    pub fn of_float(number: f64) -> Self {
        // The bits of negative numbers sort in the wrong order; adding 0.0 makes -0.0 positive.
        let bits = (number + 0.0).to_bits();
        let ordered = if number.is_nan() {
            u64::MAX
        } else if bits >> 63 == 1 {
            !bits
        } else {
            bits | 1 << 63
        };
        Self(u128::from(ordered) << 64)
    }

    /// The image of text or bytes.
    #[inline]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        of_first_bytes(bytes, 0)
    }

    /// The image of `digits` / 10^`scale`.
    pub fn of_decimal(digits: i128, scale: i8) -> Self {
        let places = PLACES - i32::from(scale);
        let factor = 10i128.checked_pow(places.unsigned_abs());
        Self::of_int(match factor {
            _ if digits == 0 => 0,
            Some(factor) if places >= 0 => {
                digits.checked_mul(factor).unwrap_or_else(|| beyond(digits))
            }
            None if places >= 0 => beyond(digits),
            // Rounded down, since the factor is positive.
            Some(factor) => digits.div_euclid(factor),
            None => digits.signum().min(0),
        })
    }

    /// The image of a value; `None` for null.
    pub fn of_value(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(truth) => Self::of_int((*truth).into()),
            Value::Int(number) | Value::Timestamp(number) => Self::of_int(*number),
            Value::Float(number) => Self::of_float(*number),
            Value::Text(text) => Self::of_bytes(text.as_bytes()),
            Value::Bytes(bytes) => Self::of_bytes(bytes),
            Value::Date(days) => Self::of_int((*days).into()),
            Value::Decimal { digits, scale } => Self::of_decimal(*digits, *scale),
        })
    }
}

/// The end of the range that stands for numbers too large or too small.
fn beyond(digits: i128) -> i128 {
    if digits < 0 { i128::MIN } else { i128::MAX }
}

/// The image of the first bytes, most significant first, padded with this byte.
#[inline]
fn of_first_bytes(bytes: &[u8], with: u8) -> Image {
    let first = bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut first = [with; BYTES];
        first[..bytes.len()].copy_from_slice(bytes);
        first
    });
    Image(u128::from_le_bytes(first).swap_bytes())
}

/// A closed range of images; empty if `low` is above `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first image.
    pub low: Image,
    /// The last image.
    pub high: Image,
}

impl Span {
    /// The empty span.
    pub const NONE: Self = Self { low: Image::MAX, high: Image::MIN };
    /// The span of all images.
    pub const ALL: Self = Self { low: Image::MIN, high: Image::MAX };

    /// The span of this image alone.
    #[inline]
    pub fn of(image: Image) -> Self {
        Self { low: image, high: image }
    }

    /// The images of all texts, or byte strings, with this prefix.
    pub fn of_prefix(prefix: &[u8]) -> Self {
        Self { low: Image::of_bytes(prefix), high: of_first_bytes(prefix, u8::MAX) }
    }

    /// Returns true if it holds no image.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.low > self.high
    }

    /// Returns true if it holds this image.
    #[inline]
    pub fn contains(self, image: Image) -> bool {
        self.low <= image && image <= self.high
    }

    /// Returns true if the spans have an image in common.
    #[inline]
    pub fn overlaps(self, other: Self) -> bool {
        self.low.max(other.low) <= self.high.min(other.high)
    }

    /// Returns the shortest span that covers both.
    #[inline]
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The last image minus the first; 0 if empty.
    pub(super) fn width(self) -> u128 {
        self.high.0.saturating_sub(self.low.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares `digits` / 10^`scale` exactly, for scales that are close enough.
    fn compare_decimals((a, s): (i128, i8), (b, t): (i128, i8)) -> std::cmp::Ordering {
        let most = s.max(t);
        let scaled = |digits: i128, scale: i8| digits * 10i128.pow((most - scale) as u32);
        scaled(a, s).cmp(&scaled(b, t))
    }

    /// Returns true if the images are in the order of the values.
    fn in_order(order: std::cmp::Ordering, a: Image, b: Image) -> bool {
        match order {
            std::cmp::Ordering::Less => a <= b,
            std::cmp::Ordering::Equal => a == b,
            std::cmp::Ordering::Greater => a >= b,
        }
    }

    fn float() -> impl Strategy<Value = f64> {
        let some = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324];
        prop_oneof![any::<f64>(), prop::sample::select(some.to_vec())]
    }

    proptest! {
        #[test]
        fn images_are_in_the_order_of_the_values(
            a: i128, b: i128, (x, y) in (float(), float()),
            (text, other) in (".{0,20}", ".{0,20}"), common in ".{0,6}",
        ) {
            prop_assert!(in_order(a.cmp(&b), Image::of_int(a), Image::of_int(b)));
            let order = x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()));
            prop_assert!(in_order(order, Image::of_float(x), Image::of_float(y)), "{} {}", x, y);
            for (text, other) in [(text.clone(), other.clone()), (common.clone() + &text, common.clone() + &other)] {
                let (image, of_other) = (Image::of_bytes(text.as_bytes()), Image::of_bytes(other.as_bytes()));
                prop_assert!(in_order(text.cmp(&other), image, of_other));
                prop_assert!(Span::of_prefix(common.as_bytes()).contains(Image::of_bytes((common.clone() + &text).as_bytes())));
            }
        }

        #[test]
        fn decimals_of_all_scales_are_in_one_order(
            (a, b) in (-(10i128.pow(18))..10i128.pow(18), -(10i128.pow(18))..10i128.pow(18)),
            (s, t) in (-3i8..16, -3i8..16),
            shift in 0i8..20,
        ) {
            // Scales around the 18 places that images keep, and below.
            let (s, t) = (s + shift, t + shift);
            let images = [Image::of_decimal(a, s), Image::of_decimal(b, t)];
            prop_assert!(in_order(compare_decimals((a, s), (b, t)), images[0], images[1]));
            prop_assert_eq!(Image::of_decimal(a * 10, s + 1), images[0]);
        }
    }

    #[test]
    fn decimals_at_the_ends_are_in_order() {
        let image = |digits, scale| Image::of_decimal(digits, scale);
        let ascending = [
            image(i128::MIN, -128),
            image(i128::MIN, 0),
            image(-1, -100),
            image(-1, 0),
            image(-1, 127),
            image(0, -128),
            image(1, 127),
            image(1, 18),
            image(1, 0),
            image(1, -21),
            image(i128::MAX, i8::MIN),
        ];
        assert!(ascending.is_sorted());
        assert_eq!(image(0, 127), image(0, -128));
        assert!(image(-1, 127) < image(0, 0) && image(1, 127) == image(0, 0));
    }
}
