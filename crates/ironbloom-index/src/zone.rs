//! Time zones, as columns of timestamps name them: `UTC`, `+02:00`, `Europe/Oslo`.
//!
//! The rules of named zones are in the program (`jiff`'s copy of the IANA database), so that an answer does not depend
//! on what the machine has installed.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::calendar::civil_from_days;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A time zone.
#[derive(Debug)]
pub(crate) enum Zone {
    /// Always this many seconds ahead of UTC.
    Offset(i64),
    Rules(TimeZone),
}

/// Why a local time is not a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalTime {
    /// Clocks were put forward past it.
    Skipped,
    /// Clocks were put back, and showed it again.
    Twice,
}

impl Zone {
    /// The zone of this name; `None` if it is unknown.
    pub(crate) fn get(name: &str) -> Option<Self> {
        if name == "Z" || name.eq_ignore_ascii_case("UTC") {
            return Some(Self::Offset(0));
        }
        if let Some(seconds) = offset(name) {
            return Some(Self::Offset(seconds));
        }
        TimeZone::get(name).ok().map(Self::Rules)
    }

    /// Seconds that clocks are ahead of UTC at this moment.
    pub(crate) fn offset_at(&self, nanoseconds: i128) -> i64 {
        match self {
            Self::Offset(seconds) => *seconds,
            Self::Rules(zone) => {
                // Beyond the years -9999 to 9999 it is what it is there.
                let (first, last) =
                    (Timestamp::MIN.as_nanosecond(), Timestamp::MAX.as_nanosecond());
                let known = Timestamp::from_nanosecond(nanoseconds.clamp(first, last));
                known.map_or(0, |moment| zone.to_offset(moment).seconds().into())
            }
        }
    }

    /// The moment at which clocks show this time, given as nanoseconds since they showed 1970-01-01T00:00:00.
    pub(crate) fn moment(&self, local: i128) -> Result<i128, LocalTime> {
        let at = |seconds: i64| local - i128::from(seconds) * NANOS_PER_SECOND;
        let Self::Rules(zone) = self else { return Ok(at(self.offset_at(local))) };
        let Some(shown) = datetime(local) else { return Ok(at(self.offset_at(local))) };
        match zone.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => Ok(at(offset.seconds().into())),
            AmbiguousOffset::Gap { .. } => Err(LocalTime::Skipped),
            AmbiguousOffset::Fold { .. } => Err(LocalTime::Twice),
        }
    }
}

/// What a clock shows, if `jiff` knows the year.
fn datetime(local: i128) -> Option<DateTime> {
    let utc = Timestamp::from_nanosecond(local).ok()?;
    Some(TimeZone::UTC.to_datetime(utc))
}

/// Seconds of an offset such as `+02:00`, `-0330`, `+01` or `+00:43:08`.
pub(crate) fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('+') {
        Some(rest) => (1, rest),
        None => (-1, text.strip_prefix('-')?),
    };
    let (mut seconds, mut rest, mut unit) = (0, rest, 3600);
    while !rest.is_empty() {
        rest = if unit < 3600 { rest.strip_prefix(':').unwrap_or(rest) } else { rest };
        let digits = rest.get(..2).filter(|two| two.bytes().all(|byte| byte.is_ascii_digit()))?;
        let number: i64 = digits.parse().ok()?;
        if unit == 0 || number >= if unit == 3600 { 24 } else { 60 } {
            return None;
        }
        seconds += number * unit;
        (rest, unit) = (&rest[2..], unit / 60);
    }
    (unit < 3600).then_some(sign * seconds)
}

/// A moment as clocks of a zone show it, with their offset: `2024-06-01T14:00:00+02:00`, in UTC `…Z`. An unknown
/// zone is shown as UTC: the moment is right all the same.
pub fn show_moment(nanoseconds: i128, zone: &str) -> String {
    let ahead = Zone::get(zone).map_or(0, |zone| zone.offset_at(nanoseconds));
    let local = nanoseconds + i128::from(ahead) * NANOS_PER_SECOND;
    let seconds = local.div_euclid(NANOS_PER_SECOND) as i64;
    let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
    let (sign, year) = if year < 0 { ("-", -year) } else { ("", year) };
    let clock = clock(seconds.rem_euclid(SECONDS_PER_DAY));
    let fraction = fraction(local.rem_euclid(NANOS_PER_SECOND) as u32);
    let offset = if ahead == 0 { "Z".to_owned() } else { shown_offset(ahead) };
    format!("{sign}{year:04}-{month:02}-{day:02}T{clock}{fraction}{offset}")
}

fn clock(seconds: i64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// As many groups of three digits as needed.
fn fraction(nanoseconds: u32) -> String {
    match nanoseconds {
        0 => String::new(),
        n if n % 1_000_000 == 0 => format!(".{:03}", n / 1_000_000),
        n if n % 1000 == 0 => format!(".{:06}", n / 1000),
        n => format!(".{n:09}"),
    }
}

fn shown_offset(seconds: i64) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let shown = format!("{sign}{}", clock(seconds.abs()));
    shown.strip_suffix(":00").map(str::to_owned).unwrap_or(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i128 = 3600 * NANOS_PER_SECOND;

    #[test]
    fn offsets_are_understood() {
        let cases = [
            ("+02:00", Some(7200)),
            ("-0330", Some(-12_600)),
            ("+01", Some(3600)),
            ("+00:43:08", Some(2588)),
            ("+", None),
            ("+1", None),
            ("+24:00", None),
            ("+02:60", None),
            ("+02:00:00:00", None),
            ("02:00", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(offset(text), wanted, "{text}");
        }
    }

    #[test]
    fn moments_are_shown_as_the_clocks_of_the_zone_show_them() {
        let summer = 1_717_243_200 * NANOS_PER_SECOND; // 2024-06-01T12:00:00Z
        let cases = [
            (summer, "UTC", "2024-06-01T12:00:00Z"),
            (summer, "Etc/UTC", "2024-06-01T12:00:00Z"),
            (summer, "Europe/Oslo", "2024-06-01T14:00:00+02:00"),
            (summer, "-03:30", "2024-06-01T08:30:00-03:30"),
            (summer + 5_000_000, "Asia/Kolkata", "2024-06-01T17:30:00.005+05:30"),
            (summer + 5, "America/New_York", "2024-06-01T08:00:00.000000005-04:00"),
            (-1, "UTC", "1969-12-31T23:59:59.999999999Z"),
            // Rules apply forever: there is summer time in 2090, too.
            (3_799_915_200 * NANOS_PER_SECOND, "Europe/Oslo", "2090-05-31T14:00:00+02:00"),
            (253_402_300_799 * NANOS_PER_SECOND, "Asia/Tokyo", "10000-01-01T08:59:59+09:00"),
            (-3_000_000_000 * NANOS_PER_SECOND, "Europe/Berlin", "1874-12-07T19:33:28+00:53:28"),
            (summer, "Mars/Olympus", "2024-06-01T12:00:00Z"),
        ];
        for (moment, zone, wanted) in cases {
            assert_eq!(show_moment(moment, zone), wanted);
        }
    }

    #[test]
    fn local_times_are_moments_unless_clocks_are_changed() {
        let oslo = Zone::get("Europe/Oslo").unwrap();
        let midnight = 1_711_843_200 * NANOS_PER_SECOND; // of 2024-03-31
        assert_eq!(oslo.moment(midnight), Ok(midnight - HOUR));
        assert_eq!(oslo.moment(midnight + 5 * HOUR / 2), Err(LocalTime::Skipped));
        assert_eq!(oslo.moment(midnight + 12 * HOUR), Ok(midnight + 10 * HOUR));
        let midnight = 1_729_987_200 * NANOS_PER_SECOND; // of 2024-10-27
        assert_eq!(oslo.moment(midnight + 5 * HOUR / 2), Err(LocalTime::Twice));
        assert_eq!(Zone::get("+02:00").unwrap().moment(0), Ok(-2 * HOUR));
        assert!(Zone::get("Mars/Olympus").is_none());
    }
}
