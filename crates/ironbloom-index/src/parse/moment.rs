//! Days and moments from text: `2024-01-31`, `2024-01-31T12:30:00.5Z`, `2024-01-31 12:30+02:00`,
//! `2024-01-31 12:30 Europe/Oslo`.

use crate::calendar::{days_from_civil, days_in};
use crate::zone::{LocalTime, Zone};

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i128 = 86_400;

/// Days since 1970-01-01 of a date.
pub(super) fn days(text: &str) -> Option<i32> {
    let (days, rest) = date(text)?;
    i32::try_from(days).ok().filter(|_| rest.is_empty())
}

/// Why a text is no moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It is something else.
    Text,
    /// Nobody knows the zone.
    Zone,
    /// Clocks did not show this time, or twice.
    Local(LocalTime),
}

/// Nanoseconds since 1970-01-01T00:00:00 of a date, or of a date and a time. Without an offset or a zone of its own it is
/// what clocks showed in the column's zone, and if the column has none, it is used as is.
pub(super) fn nanoseconds(text: &str, zone: Option<&str>) -> Result<i128, Wrong> {
    let (days, rest) = date(text).ok_or(Wrong::Text)?;
    let midnight = i128::from(days) * SECONDS_PER_DAY * NANOS_PER_SECOND;
    let (time, rest) = match rest.strip_prefix(['T', 't', ' ']) {
        Some(rest) => time(rest).ok_or(Wrong::Text)?,
        None => (0, rest),
    };
    let name = match rest.trim() {
        "" => zone.unwrap_or("UTC"),
        "z" => "UTC",
        own => own.strip_prefix('[').and_then(|own| own.strip_suffix(']')).unwrap_or(own),
    };
    let zone = Zone::get(name).ok_or_else(|| {
        // A name, as opposed to what is left of a time.
        let named = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if named && name.len() > 1 { Wrong::Zone } else { Wrong::Text }
    })?;
    zone.moment(midnight + time).map_err(Wrong::Local)
}

/// A date and what follows it.
fn date(text: &str) -> Option<(i64, &str)> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (year, rest) = text.split_once('-')?;
    // Four digits, so that 24-1-31 is not mistaken for the year 24; more are allowed.
    if !(4..=7).contains(&year.len()) || !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let year: i32 = year.parse().ok()?;
    let (month, rest) = two_digits(rest)?;
    let (day, rest) = two_digits(rest.strip_prefix('-')?)?;
    let year = if negative { -year } else { year };
    let valid = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    valid.then(|| (days_from_civil(year, month, day), rest))
}

/// Nanoseconds of a time of day and what follows it. Seconds may be missing, and have up to nine places.
fn time(text: &str) -> Option<(i128, &str)> {
    let (hour, rest) = two_digits(text)?;
    let (minute, mut rest) = two_digits(rest.strip_prefix(':')?)?;
    let (mut second, mut nanos) = (0, 0);
    if let Some(seconds) = rest.strip_prefix(':') {
        (second, rest) = two_digits(seconds)?;
        if let Some(fraction) = rest.strip_prefix('.') {
            let places = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if !(1..=9).contains(&places) {
                return None;
            }
            nanos = fraction[..places].parse::<i128>().ok()? * 10i128.pow(9 - places as u32);
            rest = &fraction[places..];
        }
    }
    let valid = hour < 24 && minute < 60 && second < 60;
    let seconds = i128::from(hour * 3600 + minute * 60 + second);
    valid.then_some((seconds * NANOS_PER_SECOND + nanos, rest))
}

fn two_digits(text: &str) -> Option<(u32, &str)> {
    let digits = text.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some((digits.parse().ok()?, &text[2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        let cases = [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2024-01-31", 19_753),
            ("2026-11-16", 20_773),
            ("0001-01-01", -719_162),
            ("9999-12-31", 2_932_896),
            // The last day of 32 bits, which some writers mean for ever.
            ("5881580-07-11", i32::MAX),
            ("-5877641-06-23", i32::MIN),
        ];
        for (text, wanted) in cases {
            assert_eq!(days(text), Some(wanted), "{text}");
        }
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for text in [
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-01-32",
            "24-01-01",
            "2024-1-1",
            "2024-01-01x",
            "",
        ] {
            assert_eq!(days(text), None, "{text}");
        }
    }

    #[test]
    fn moments_are_exact() {
        const SECOND: i128 = 1_000_000_000;
        let cases = [
            ("1970-01-01", 0),
            ("1970-01-01T00:00:01Z", SECOND),
            ("1970-01-01 00:00:00.000000001", 1),
            ("1970-01-01T02:00:00+02:00", 0),
            ("1969-12-31T23:00-0100", 0),
            ("2024-01-31t12:30:15.5z", (19_753 * 86_400 + 45_015) * SECOND + SECOND / 2),
            ("9999-12-31T23:59:59", (2_932_896 * 86_400 + 86_399) * SECOND),
        ];
        for (text, wanted) in cases {
            assert_eq!(nanoseconds(text, None), Ok(wanted), "{text}");
        }
        for text in [
            "2024-01-31T",
            "2024-01-31T24:00:00",
            "2024-01-31T12",
            "2024-01-31T12:00:00.",
            "2024-01-31T12:00:00+2",
        ] {
            assert_eq!(nanoseconds(text, None), Err(Wrong::Text), "{text}");
        }
    }

    #[test]
    fn moments_without_an_offset_are_those_of_the_zone() {
        const NOON: i128 = 1_717_243_200_000_000_000; // 2024-06-01T12:00:00Z
        let oslo = Some("Europe/Oslo");
        for (text, zone) in [
            ("2024-06-01 12:00", None),
            ("2024-06-01 12:00", Some("UTC")),
            ("2024-06-01 14:00", oslo),
            ("2024-06-01 12:00Z", oslo),
            ("2024-06-01T08:00-04:00", oslo),
            ("2024-06-01 08:00 America/New_York", oslo),
            ("2024-06-01T08:00[America/New_York]", None),
            ("2024-06-01 15:30", Some("+03:30")),
        ] {
            assert_eq!(nanoseconds(text, zone), Ok(NOON), "{text} {zone:?}");
        }
        let twice = Wrong::Local(LocalTime::Twice);
        assert_eq!(nanoseconds("2024-10-27 02:30", oslo), Err(twice));
        assert!(nanoseconds("2024-10-27 02:30+01:00", oslo).is_ok());
        let skipped = Wrong::Local(LocalTime::Skipped);
        assert_eq!(nanoseconds("2024-03-31 02:30", oslo), Err(skipped));
        assert_eq!(nanoseconds("2024-06-01 12:00 Mars/Olympus", None), Err(Wrong::Zone));
        assert_eq!(nanoseconds("2024-06-01 12:00", Some("Mars/Olympus")), Err(Wrong::Zone));
    }
}
