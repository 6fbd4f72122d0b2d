//! Numbers as people write them.

/// Parses `250k`, `10M`, `100m`, `1000000`.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = match lower.strip_suffix(['k', 'm', 'g']) {
        Some(digits) if lower.ends_with('k') => (digits, 1_000),
        Some(digits) if lower.ends_with('m') => (digits, 1_000_000),
        Some(digits) => (digits, 1_000_000_000),
        None => (lower.as_str(), 1),
    };
    let count = digits.replace('_', "").parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    count.filter(|&n| n > 0).ok_or_else(|| format!("not a count: {text:?} (write 250k or 10M)"))
}

/// Formats as `250k`, `1.5M`, `10M`: for file names and axes.
pub(crate) fn short(count: u64) -> String {
    for (unit, letter) in [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")] {
        if count >= unit && count.is_multiple_of(unit) {
            return format!("{}{letter}", count / unit);
        }
        if count > unit && count.is_multiple_of(unit / 10) {
            return format!("{}.{}{letter}", count / unit, count / (unit / 10) % 10);
        }
    }
    count.to_string()
}

/// Formats as `1,234,567`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_and_written_as_people_do() {
        for (text, count, written) in [
            ("250k", 250_000, "250k"),
            ("20m", 20_000_000, "20M"),
            ("100M", 100_000_000, "100M"),
            ("1G", 1_000_000_000, "1G"),
            ("1_234", 1_234, "1234"),
        ] {
            assert_eq!(parse_count(text), Ok(count));
            assert_eq!(short(count), written);
        }
        for text in ["", "k", "0", "-1", "1.5M", "99999999999G"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
        assert_eq!((short(1_500_000), short(1_230_000)), ("1.5M".to_owned(), "1230k".to_owned()));
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
