//! Numbers as people write them: `10M`, `1%`, `64MiB`, and back.

use std::fmt;

/// Text that is not the number it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NumberError {
    NotACount(String),
    NotASize(String),
    NotARate(String),
    OutOfRange(String),
    Fraction(String),
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotACount(text) => {
                write!(f, "not a number: {text:?} (write 1000000, 1M or 1e6)")
            }
            Self::NotASize(text) => write!(f, "not a size: {text:?} (write 64MiB, 1.5GB or 4096)"),
            Self::NotARate(text) => {
                write!(f, "not a rate: {text:?} (write 1%, 0.01, 1e-6 or 1/1000)")
            }
            Self::OutOfRange(text) => write!(f, "out of range: {text:?}"),
            Self::Fraction(text) => write!(f, "not a whole number: {text:?}"),
        }
    }
}

impl std::error::Error for NumberError {}

/// `10M`, `1.5k`, `1e6`, `10_000`, `10,000`: powers of 1000, k M G T (B as in billion).
pub(crate) fn parse_count(text: &str) -> Result<u64, NumberError> {
    let value = scaled(text, |suffix| {
        Some(match suffix.to_ascii_lowercase().as_str() {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" | "b" => 1e9,
            "t" => 1e12,
            _ => return None,
        })
    })
    .ok_or_else(|| NumberError::NotACount(text.to_owned()))?;
    whole(value, text)
}

/// `64MiB`, `1.5G`, `4096`: KiB MiB GiB TiB are powers of 1024; kB MB GB TB (or k M G T) of 1000.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, NumberError> {
    let value = scaled(text, |suffix| {
        let suffix = suffix.to_ascii_lowercase();
        let (prefix, base) = match suffix.strip_suffix("ib") {
            Some(prefix) => (prefix, 1024.0f64),
            None => (suffix.strip_suffix('b').unwrap_or(&suffix), 1000.0),
        };
        let power = ["", "k", "m", "g", "t"].iter().position(|&p| p == prefix)?;
        Some(base.powi(power as i32))
    })
    .ok_or_else(|| NumberError::NotASize(text.to_owned()))?;
    whole(value, text)
}

/// `1%`, `0.01`, `1e-6`, `1/1000`. Whether it lies between 0 and 1 is for the filter to say.
pub(crate) fn parse_rate(text: &str) -> Result<f64, NumberError> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|rate| rate.is_finite());
    let text_without_percent = text.strip_suffix('%');
    let rate = match (text_without_percent, text.split_once('/')) {
        (Some(percent), _) => number(percent).map(|rate| rate / 100.0),
        (None, Some((one, many))) => number(one).zip(number(many)).map(|(one, many)| one / many),
        (None, None) => number(text),
    };
    rate.filter(|rate| rate.is_finite()).ok_or_else(|| NumberError::NotARate(text.to_owned()))
}

fn scaled(text: &str, scale: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let digits: String = text.trim().chars().filter(|c| !matches!(c, '_' | ',')).collect();
    // The suffix begins at the last letter run; an exponent (1e6) is followed by digits, so it is not one.
    let split = digits.rfind(|c: char| c.is_ascii_digit() || c == '.').map_or(0, |at| at + 1);
    let (number, suffix) = digits.split_at(split);
    Some(number.parse::<f64>().ok()? * scale(suffix.trim())?)
}

fn whole(value: f64, text: &str) -> Result<u64, NumberError> {
    if !(0.0..1.8e19).contains(&value) {
        return Err(NumberError::OutOfRange(text.to_owned()));
    }
    if (value - value.round()).abs() > 1e-6 * value.max(1.0) {
        return Err(NumberError::Fraction(text.to_owned()));
    }
    Ok(value.round() as u64)
}

/// `1,234,567`
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 key`, `2,000 keys`
pub(crate) fn plural(value: u64, noun: &str) -> String {
    let ending = match (value, noun) {
        (1, _) => "",
        (_, noun) if noun.ends_with("ch") || noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", count(value))
}

/// `11.98 MiB`
pub(crate) fn bytes(value: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = value as f64;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < units.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{value} B") } else { format!("{scaled:.2} {}", units[unit]) }
}

/// `12.3 µs`, `4.56 ms`, `7.89 s`: three digits.
pub(crate) fn time(value: std::time::Duration) -> String {
    let seconds = value.as_secs_f64();
    let (scaled, unit) = match seconds {
        ..1e-3 => (seconds * 1e6, "µs"),
        ..1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let decimals = if scaled < 10.0 { 2 } else { usize::from(scaled < 100.0) };
    format!("{scaled:.decimals$} {unit}")
}

/// `1.00 %`, or `2.4e-6` where per cent would hide it.
pub(crate) fn rate(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if value >= 0.000_095 {
        let percent = value * 100.0;
        let decimals = if percent >= 0.995 { 2 } else { 4 };
        format!("{percent:.decimals$} %")
    } else {
        format!("{value:.1e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_people_write_them() {
        for (text, value) in [
            ("0", 0),
            ("10M", 10_000_000),
            ("1.5k", 1500),
            ("1e6", 1_000_000),
            ("1E6", 1_000_000),
            ("10_000", 10_000),
            ("10,000", 10_000),
            ("2B", 2_000_000_000),
            ("1 T", 1_000_000_000_000),
        ] {
            assert_eq!(parse_count(text), Ok(value), "{text}");
        }
        for text in ["", "M", "ten", "-5", "1.5", "1e99", "5%", "1MiB", "nan", "inf"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_with_both_kinds_of_prefix() {
        for (text, value) in [
            ("64MiB", 64 << 20),
            ("64MB", 64_000_000),
            ("64M", 64_000_000),
            ("1.5kib", 1536),
            ("7", 7),
            ("7B", 7),
        ] {
            assert_eq!(parse_bytes(text), Ok(value), "{text}");
        }
        for text in ["", "MiB", "1XB", "0.5", "-1k"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_read_in_four_notations() {
        for (text, value) in
            [("1%", 0.01), ("0.01", 0.01), ("1e-6", 1e-6), ("1/1000", 0.001), ("0.5 %", 0.005)]
        {
            assert!((parse_rate(text).unwrap() - value).abs() < 1e-12, "{text}");
        }
        for text in ["", "%", "one", "1/0", "nan"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_written_for_reading() {
        assert_eq!((count(1_234_567).as_str(), count(999).as_str()), ("1,234,567", "999"));
        assert_eq!((bytes(12_582_912).as_str(), bytes(100).as_str()), ("12.00 MiB", "100 B"));
        assert_eq!((rate(0.01).as_str(), rate(0.001).as_str()), ("1.00 %", "0.1000 %"));
        assert_eq!(rate(1e-6), "1.0e-6");
        assert_eq!([plural(0, "key"), plural(1, "key")], ["0 keys", "1 key"]);
        assert_eq!([plural(1, "match"), plural(2000, "match")], ["1 match", "2,000 matches"]);
    }
}
