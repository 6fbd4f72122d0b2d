//! Numbers from text, exactly.

/// `digits` / 10^`scale`, without trailing zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exact {
    pub(super) digits: i128,
    pub(super) scale: i32,
}

/// What a text of digits is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Exact(Exact),
    /// A number with more significant digits than 128 bits hold; negative or not.
    TooLong {
        negative: bool,
    },
    NotANumber,
}

/// Reads `-12.50e3`.
pub(super) fn parse(text: &str) -> Parsed {
    let (negative, body) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()),
        None => (body, Some(0)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return Parsed::NotANumber;
    }
    // Trailing zeros do not count: 1.50 is 1.5, and 1e3 has one digit.
    let all = [whole, fraction].concat();
    let significant = all.trim_end_matches('0');
    let zeros = all.len() - significant.len();
    if significant.is_empty() {
        return Parsed::Exact(Exact { digits: 0, scale: 0 });
    }
    let scale = exponent.and_then(|exponent| {
        let scale = i64::try_from(fraction.len()).ok()? - i64::try_from(zeros).ok()?;
        i32::try_from(scale - i64::from(exponent)).ok()
    });
    match (significant.parse::<i128>(), scale) {
        (Ok(digits), Some(scale)) => {
            Parsed::Exact(Exact { digits: if negative { -digits } else { digits }, scale })
        }
        _ => Parsed::TooLong { negative },
    }
}

impl Exact {
    /// The largest integer that is not larger, as far as 128 bits reach.
    pub(super) fn floor(self) -> i128 {
        let Ok(places) = u32::try_from(self.scale) else {
            let factor = 10i128.checked_pow(self.scale.unsigned_abs());
            let product = factor.and_then(|factor| self.digits.checked_mul(factor));
            return product.unwrap_or(if self.digits < 0 { i128::MIN } else { i128::MAX });
        };
        match 10i128.checked_pow(places) {
            Some(divisor) => self.digits.div_euclid(divisor),
            None => -i128::from(self.digits < 0),
        }
    }

    pub(super) fn is_integer(self) -> bool {
        self.scale <= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> (i128, i32) {
        match parse(text) {
            Parsed::Exact(exact) => (exact.digits, exact.scale),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn numbers_are_read_without_their_trailing_zeros() {
        let cases = [
            ("1.50", (15, 1)),
            ("-0.10", (-1, 1)),
            ("100", (1, -2)),
            ("1e3", (1, -3)),
            ("12.5E-2", (125, 3)),
            (".5", (5, 1)),
            ("5.", (5, 0)),
            ("+0.000", (0, 0)),
            ("0e99999999999", (0, 0)),
            ("170141183460469231731687303715884105727", (i128::MAX, 0)),
        ];
        for (text, wanted) in cases {
            assert_eq!(exact(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_128_bits_cannot_hold_is_said() {
        let long = "170141183460469231731687303715884105729";
        assert_eq!(parse(long), Parsed::TooLong { negative: false });
        assert_eq!(parse("-1e99999999999"), Parsed::TooLong { negative: true });
        for text in ["", "-", ".", "e5", "1x", "0x10", "1_000", "inf"] {
            assert_eq!(parse(text), Parsed::NotANumber, "{text}");
        }
    }

    #[test]
    fn floors_are_below() {
        let floor = |text| match parse(text) {
            Parsed::Exact(exact) => exact.floor(),
            other => panic!("{other:?}"),
        };
        assert_eq!(floor("1.5"), 1);
        assert_eq!(floor("-1.5"), -2);
        assert_eq!(floor("-3"), -3);
        assert_eq!(floor("12e2"), 1200);
        assert_eq!(floor("1e50"), i128::MAX);
        assert_eq!(floor("-1e50"), i128::MIN);
        assert_eq!(floor("1e-50"), 0);
        assert_eq!(floor("-1e-50"), -1);
    }
}
