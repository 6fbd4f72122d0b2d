//! Days and moments from text: `2024-01-31`, `2024-01-31T12:30:00.5Z`, `2024-01-31 12:30+02:00`.

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i128 = 86_400;

/// Days since 1970-01-01 of a date.
pub(super) fn days(text: &str) -> Option<i32> {
    let (days, rest) = date(text)?;
    rest.is_empty().then_some(days)
}

/// Nanoseconds since 1970-01-01T00:00:00 of a date, or of a date and a time. Without an offset it is used as is.
pub(super) fn nanoseconds(text: &str) -> Option<i128> {
    let (days, rest) = date(text)?;
    let midnight = i128::from(days) * SECONDS_PER_DAY * NANOS_PER_SECOND;
    if rest.is_empty() {
        return Some(midnight);
    }
    let (time, rest) = time(rest.strip_prefix(['T', 't', ' '])?)?;
    Some(midnight + time - i128::from(offset(rest)?) * NANOS_PER_SECOND)
}

/// A date and what follows it.
fn date(text: &str) -> Option<(i32, &str)> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (year, rest) = text.split_once('-')?;
    // Four digits, so that 24-1-31 is not mistaken for the year 24; more are allowed.
    if !(4..=6).contains(&year.len()) || !year.bytes().all(|byte| byte.is_ascii_digit()) {
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

/// Seconds that the local time is ahead of UTC.
fn offset(text: &str) -> Option<i32> {
    if text.is_empty() || text == "Z" || text == "z" {
        return Some(0);
    }
    let (sign, rest) = match text.strip_prefix('+') {
        Some(rest) => (1, rest),
        None => (-1, text.strip_prefix('-')?),
    };
    let (hours, rest) = two_digits(rest)?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() { (0, rest) } else { two_digits(rest)? };
    let valid = rest.is_empty() && hours < 24 && minutes < 60;
    valid.then_some(sign * (hours * 3600 + minutes * 60) as i32)
}

fn two_digits(text: &str) -> Option<(u32, &str)> {
    let digits = text.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some((digits.parse().ok()?, &text[2..]))
}

fn days_in(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar, even before it was in use.
///
/// Years begin in March, so that the leap day is the last of its year: day y of such a year is (153 m + 2) / 5 + d - 1 with m
/// months since March. An era of 400 years has 146097 days.
fn days_from_civil(year: i32, month: u32, day: u32) -> i32 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let since_march = (month as i32 + 9) % 12;
    let day_of_year = (153 * since_march + 2) / 5 + day as i32 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
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
        ];
        for (text, wanted) in cases {
            assert_eq!(days(text), Some(wanted), "{text}");
        }
    }

    #[test]
    fn all_days_of_a_thousand_years_follow_one_another() {
        let mut expected = days("1600-01-01").unwrap();
        for year in 1600..2600 {
            for month in 1..=12 {
                for day in 1..=days_in(year, month) {
                    assert_eq!(days_from_civil(year, month, day), expected);
                    expected += 1;
                }
            }
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
            assert_eq!(nanoseconds(text), Some(wanted), "{text}");
        }
        for text in [
            "2024-01-31T",
            "2024-01-31T24:00:00",
            "2024-01-31T12",
            "2024-01-31T12:00:00.",
            "2024-01-31T12:00:00+2",
        ] {
            assert_eq!(nanoseconds(text), None, "{text}");
        }
    }
}
