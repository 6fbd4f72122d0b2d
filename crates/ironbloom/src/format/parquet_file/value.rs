//! From text to the bytes that a filter hashes: all forms that the value can take in its column.

use super::footer::{Column, Meaning, Physical};
use super::{ParquetError, Plain};
use crate::hash::key_form::from_hex;

/// Bytes of the widest decimal, 38 digits.
const MAX_DECIMAL: usize = 16;

/// Maximum decimal places of such a decimal: 10^38 is below 2^127.
const MAX_SCALE: usize = 38;

/// Maximum believable length of a fixed-length decimal.
const MAX_FIXED_DECIMAL: usize = 1024;

impl Column {
    /// Describes the values of this column.
    fn wanted(&self) -> String {
        let what = match (self.physical, self.meaning) {
            (_, Meaning::Decimal { scale }) => return format!("a decimal of scale {scale}"),
            (_, Meaning::Date) => "a date such as 2026-11-18",
            (_, Meaning::Timestamp { is_utc: true, .. }) => {
                "a time such as 2026-11-18T09:30:00.25Z, with a zone or of UTC, that the column can hold"
            }
            (_, Meaning::Timestamp { .. }) => {
                "a time such as 2026-11-18T09:30:00.25, without a zone, that the column can hold"
            }
            (_, Meaning::Uuid) => "a UUID",
            (Physical::Int32, Meaning::Unsigned) => "an integer from 0 to 4294967295",
            (Physical::Int64, Meaning::Unsigned) => "an integer from 0 to 18446744073709551615",
            (Physical::Int32, _) => "an integer of 32 bits",
            (Physical::Int64, _) => "an integer of 64 bits",
            (Physical::Float | Physical::Double, _) => "a number, other than NaN",
            (Physical::Fixed, _) => {
                return format!("{} bytes, as text or as hexadecimal digits after 0x", self.length);
            }
            (Physical::ByteArray, _) => "text",
            (Physical::Boolean | Physical::Int96, _) => "of a type that a filter can be asked for",
        };
        what.to_owned()
    }

    /// Returns the forms in which a value, given as text, may have been hashed.
    pub(super) fn encoded(&self, value: &str) -> Result<Vec<Vec<u8>>, ParquetError> {
        let forms = self.forms(value).filter(|forms| !forms.is_empty());
        forms.ok_or_else(|| ParquetError::Value { value: value.to_owned(), wanted: self.wanted() })
    }

    fn forms(&self, value: &str) -> Option<Vec<Vec<u8>>> {
        match (self.physical, self.meaning) {
            (_, Meaning::Float16) => None,
            (_, Meaning::Decimal { scale }) => self.decimal(unscaled(value, scale)?),
            (Physical::Int32, Meaning::Date) => {
                let days = days(value).or_else(|| value.parse().ok())?;
                self.physical.plain(Plain::Integer(days.into()))
            }
            (Physical::Int32, Meaning::Unsigned) => self.integer::<u32>(value),
            (Physical::Int32, _) => self.integer::<i32>(value),
            (Physical::Int64, Meaning::Unsigned) => self.integer::<u64>(value),
            (Physical::Int64, Meaning::Timestamp { units_per_second, is_utc }) => {
                let units = units(value, units_per_second, is_utc)?;
                self.physical.plain(Plain::Integer(units.into()))
            }
            (Physical::Int64, _) => self.integer::<i64>(value),
            // Rounded once, from the text.
            (Physical::Float, _) => {
                self.physical.plain(Plain::Number(value.parse::<f32>().ok()?.into()))
            }
            (Physical::Double, _) => self.physical.plain(Plain::Number(value.parse().ok()?)),
            (Physical::Fixed, Meaning::Uuid) => {
                let digits: String = value.chars().filter(|&letter| letter != '-').collect();
                Some(vec![from_hex(digits.as_bytes()).filter(|bytes| bytes.len() == 16)?])
            }
            (Physical::Fixed, _) => {
                let digits = value.starts_with("0x").then(|| from_hex(value.as_bytes())).flatten();
                let forms = [Some(value.as_bytes().to_vec()), digits].into_iter().flatten();
                Some(forms.filter(|bytes| bytes.len() == self.length).collect())
            }
            (Physical::ByteArray, meaning) => {
                let mut forms = vec![value.as_bytes().to_vec()];
                // For bytes that are not text, hexadecimal digits may be meant.
                if meaning != Meaning::Text && value.starts_with("0x") {
                    forms.extend(from_hex(value.as_bytes()));
                }
                Some(forms)
            }
            (Physical::Boolean | Physical::Int96, _) => None,
        }
    }

    /// Encodes an integer in the range of its column.
    fn integer<N: std::str::FromStr + Into<i128>>(&self, value: &str) -> Option<Vec<Vec<u8>>> {
        self.physical.plain(Plain::Integer(value.trim().parse::<N>().ok()?.into()))
    }

    /// Encodes an unscaled decimal.
    fn decimal(&self, number: i128) -> Option<Vec<Vec<u8>>> {
        // Big-endian, and as short as possible.
        let mut whole = number.to_le_bytes();
        whole.reverse();
        let least = (1..=MAX_DECIMAL)
            .find(|&length| number >> (8 * length - 1) == 0 || number >> (8 * length - 1) == -1)?;
        match self.physical {
            Physical::Int32 => {
                self.physical.plain(Plain::Integer(i32::try_from(number).ok()?.into()))
            }
            Physical::Int64 => {
                self.physical.plain(Plain::Integer(i64::try_from(number).ok()?.into()))
            }
            Physical::Fixed if (least..=MAX_FIXED_DECIMAL).contains(&self.length) => {
                let sign = if number < 0 { 0xff } else { 0 };
                let mut bytes = vec![sign; self.length.saturating_sub(MAX_DECIMAL)];
                bytes.extend(&whole[MAX_DECIMAL.saturating_sub(self.length)..]);
                Some(vec![bytes])
            }
            // Writers choose the length.
            Physical::ByteArray => {
                let lengths = least..=MAX_DECIMAL;
                Some(lengths.map(|length| whole[MAX_DECIMAL - length..].to_vec()).collect())
            }
            _ => None,
        }
    }
}

/// Parses a decimal as an integer multiple of its last digit.
fn unscaled(value: &str, scale: i32) -> Option<i128> {
    let (sign, digits) = match value.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", value.strip_prefix('+').unwrap_or(value)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    // More digits than a number has here: a file may claim any scale, and must not make us write that many zeros.
    let scale = usize::try_from(scale).ok().filter(|&scale| scale <= MAX_SCALE)?;
    let is_number =
        !digits.is_empty() && whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
    if !is_number || fraction.len() > scale {
        return None; // no value of the column equals it
    }
    format!("{sign}{whole}{fraction:0<scale$}").parse().ok()
}

/// Days from 1970-01-01 to a date, in the proleptic Gregorian calendar.
fn days(value: &str) -> Option<i32> {
    let mut parts = value.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day): (i64, i64, i64) =
        (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(0..=9999).contains(&year) || !(1..=length).contains(&day) {
        return None;
    }
    // Years begin in March, so that the leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = 365 * year + leaps + (153 * month + 2) / 5 + day - 1;
    i32::try_from(days - 719_468).ok()
}

/// Units since 1970-01-01 of a time: a number of them, a date, or a date and a time with `T` or a blank between. A zone is
/// subtracted where the column is in UTC, and without one UTC is meant. `None` if the column cannot hold it exactly.
fn units(value: &str, per_second: i64, is_utc: bool) -> Option<i64> {
    if let Ok(units) = value.trim().parse() {
        return Some(units);
    }
    let (date, time) = match value.split_once(['T', ' ']) {
        Some((date, time)) => (date, time),
        None => (value, "00:00"),
    };
    let (time, offset) = match time.find(['Z', '+', '-']) {
        Some(at) if is_utc => (&time[..at], offset(&time[at..])?),
        Some(_) => return None,
        None => (time, 0),
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut parts = clock.split(':');
    let (hour, minute) = (below(parts.next()?, 24)?, below(parts.next()?, 60)?);
    let second = parts.next().map_or(Some(0), |second| below(second, 60))?;
    if parts.next().is_some() || fraction.is_empty() {
        return None;
    }
    let seconds = i64::from(days(date)?) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    // As a decimal: its unit is a second's 3rd, 6th or 9th digit.
    let fraction = unscaled(&format!("0.{fraction}"), per_second.ilog10().cast_signed())?;
    seconds.checked_mul(per_second)?.checked_add(i64::try_from(fraction).ok()?)
}

/// Seconds that a zone is ahead of UTC: `Z`, `+01:00`, `-0530`, `+01`.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone[1..].chars().filter(|&letter| letter != ':').collect();
    let (hours, minutes) = match digits.len() {
        2 => (digits.as_str(), "00"),
        4 if digits.is_ascii() => digits.split_at(2),
        _ => return None,
    };
    Some(sign * (below(hours, 24)? * 3600 + below(minutes, 60)? * 60))
}

/// A number of two digits below this one.
fn below(digits: &str, end: i64) -> Option<i64> {
    let is_number = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|&number| is_number && number < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_units_since_1970() {
        let second = 1_763_458_200; // 2025-11-18T09:30:00Z
        for (value, expected) in [
            ("2025-11-18T09:30:00Z", Some(second * 1000)),
            ("2025-11-18 09:30", Some(second * 1000)),
            ("2025-11-18T10:30:00.25+01:00", Some(second * 1000 + 250)),
            ("2025-11-18T04:00:00-0530", Some(second * 1000)),
            ("2025-11-18", Some((second - 9 * 3600 - 1800) * 1000)),
            ("1969-12-31T23:59:59.999Z", Some(-1)),
            ("1763458200000", Some(second * 1000)),
            ("-1", Some(-1)),
            // Between two values of the column, and what is no time.
            ("2025-11-18T09:30:00.0001Z", None),
            ("2025-11-18T24:00:00Z", None),
            ("2025-11-18T09:60", None),
            ("2025-11-18T9:30", None),
            ("2025-11-18T09:30:00.Z", None),
            ("2025-11-18T09:30:00+1", None),
            ("2025-11-18T09:30:00+é", None),
            ("2025-02-29T09:30:00Z", None),
            ("2025-11-18T09:30:00:00", None),
            ("", None),
            ("T", None),
        ] {
            assert_eq!(units(value, 1000, true), expected, "{value}");
        }
        assert_eq!(
            units("2025-11-18T09:30:00.0001", 1_000_000, false),
            Some(second * 1_000_000 + 100)
        );
        assert_eq!(
            units("2025-11-18T09:30:00Z", 1_000_000, false),
            None,
            "a zone that it does not have"
        );
        assert_eq!(units("9999-12-31", 1_000_000_000, false), None, "beyond 64 bits");
    }

    fn column(physical: Physical, meaning: Meaning, length: usize) -> Column {
        Column { path: "c".to_owned(), physical, length, meaning }
    }

    fn only(physical: Physical, meaning: Meaning, length: usize, value: &str) -> Vec<u8> {
        let forms = column(physical, meaning, length).encoded(value).unwrap();
        assert_eq!(forms.len(), 1, "{value}");
        forms[0].clone()
    }

    #[test]
    fn integers_are_as_wide_as_their_physical_type() {
        assert_eq!(only(Physical::Int32, Meaning::Plain, 0, "-1"), [0xff; 4]);
        assert_eq!(only(Physical::Int32, Meaning::Unsigned, 0, "4294967295"), [0xff; 4]);
        assert_eq!(only(Physical::Int64, Meaning::Plain, 0, "7"), 7i64.to_le_bytes());
        assert!(column(Physical::Int32, Meaning::Plain, 0).encoded("4294967295").is_err());
        assert!(column(Physical::Int32, Meaning::Plain, 0).encoded("seven").is_err());
    }

    /// Found by fuzzing: a claimed scale was used as the width of a text, and the length of a column as that of a
    /// value.
    #[test]
    fn a_hostile_scale_or_length_is_an_error() {
        for scale in [39, 65_536, i32::MAX, -1] {
            let column = column(Physical::Int32, Meaning::Decimal { scale }, 0);
            assert!(column.encoded("7").is_err(), "{scale}");
        }
        assert_eq!(only(Physical::Int32, Meaning::Decimal { scale: 38 }, 0, "0"), [0; 4]);
        let decimal = Meaning::Decimal { scale: 2 };
        assert!(column(Physical::Fixed, decimal, i32::MAX as usize).encoded("7").is_err());
    }

    #[test]
    fn decimals_of_fixed_length_fill_it() {
        let decimal = Meaning::Decimal { scale: 2 };
        assert_eq!(only(Physical::Fixed, decimal, 4, "1.5"), [0, 0, 0, 150]);
        assert_eq!(only(Physical::Fixed, decimal, 4, "-1.50"), [0xff, 0xff, 0xff, 0x6a]);
        assert_eq!(only(Physical::Fixed, decimal, 20, "-0.01"), [0xff; 20]);
        assert_eq!(only(Physical::Int32, decimal, 0, "-1.5"), (-150i32).to_le_bytes());
        assert_eq!(only(Physical::Int64, decimal, 0, "0"), [0; 8]);
        let forms = column(Physical::ByteArray, decimal, 0).encoded("1.28").unwrap();
        assert_eq!((&forms[0][..], forms.len()), (&[0, 0x80][..], 15), "128 needs a sign bit");
        assert!(column(Physical::Fixed, decimal, 4).encoded("1.234").is_err());
        assert!(column(Physical::Fixed, decimal, 1).encoded("12345").is_err());
    }

    #[test]
    fn a_zero_is_both_zeros_and_nan_is_nothing() {
        let floats = column(Physical::Float, Meaning::Plain, 0);
        assert_eq!(floats.encoded("-0").unwrap(), [[0, 0, 0, 0], [0, 0, 0, 0x80]]);
        assert!(floats.encoded("nan").is_err());
        let doubles = column(Physical::Double, Meaning::Plain, 0);
        assert_eq!(doubles.encoded("0").unwrap().len(), 2);
        assert_eq!(doubles.encoded("1.5").unwrap(), [1.5f64.to_le_bytes()]);
    }

    #[test]
    fn dates_are_days() {
        for (date, expected) in
            [("1970-01-01", 0), ("1969-12-31", -1), ("2000-02-29", 11_016), ("2026-11-18", 20_775)]
        {
            assert_eq!(days(date), Some(expected), "{date}");
        }
        for date in ["2023-02-29", "2023-13-01", "2023-00-10", "tomorrow", "2023-1"] {
            assert_eq!(days(date), None, "{date}");
        }
    }

    #[test]
    fn bytes_are_text_or_digits() {
        let fixed = column(Physical::Fixed, Meaning::Plain, 4);
        assert_eq!(fixed.encoded("abcd").unwrap(), [b"abcd"]);
        assert_eq!(fixed.encoded("0x01020304").unwrap(), [[1, 2, 3, 4]]);
        assert!(fixed.encoded("abc").is_err());
        let bytes = column(Physical::ByteArray, Meaning::Plain, 0);
        assert_eq!(bytes.encoded("0x01").unwrap(), [b"0x01".to_vec(), vec![1]]);
        let text = column(Physical::ByteArray, Meaning::Text, 0);
        assert_eq!(text.encoded("0x01").unwrap(), [b"0x01"]);
        let uuid = column(Physical::Fixed, Meaning::Uuid, 16);
        assert_eq!(uuid.encoded("00000000-0000-0000-0000-0000000000ff").unwrap()[0][15], 0xff);
    }
}
