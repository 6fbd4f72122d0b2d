//! What CONFIG SET changes: the defaults of filters that are created implicitly, and limits.
//!
//! Names, defaults and ranges are RedisBloom's, except for the last two. Redis 8 knows them by these names; older servers and
//! Valkey prefix them with the module's name: `ironbloom.bf-error-rate`.

use std::ffi::CStr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::limits::MemoryLimit;

/// Largest capacity of a filter, or of its first sub-filter.
pub(crate) const MAX_CAPACITY: i64 = 1 << 30;

/// Largest factor between the sizes of two sub-filters.
pub(crate) const MAX_EXPANSION: i64 = 32768;

/// Largest rate. A filter with a higher one says little; RedisBloom silently uses this one instead, and so do we.
pub(crate) const MAX_RATE: f64 = 0.25;

/// A setting that is a whole number.
pub(crate) struct Number {
    /// Its name.
    pub(crate) name: &'static CStr,
    value: AtomicI64,
    /// The default value.
    pub(crate) default: i64,
    /// The least value allowed.
    pub(crate) least: i64,
    /// The greatest value allowed.
    pub(crate) greatest: i64,
}

impl Number {
    const fn new(name: &'static CStr, default: i64, least: i64, greatest: i64) -> Self {
        Self { name, value: AtomicI64::new(default), default, least, greatest }
    }

    /// The value.
    pub(crate) fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Sets it. False, and nothing changed, outside its range.
    pub(crate) fn set(&self, value: i64) -> bool {
        let is_allowed = (self.least..=self.greatest).contains(&value);
        if is_allowed {
            self.value.store(value, Ordering::Relaxed);
        }
        is_allowed
    }
}

/// The rate of Bloom filters.
pub(crate) struct Rate {
    /// Its name.
    pub(crate) name: &'static CStr,
    /// The default value.
    pub(crate) default: &'static CStr,
    bits: AtomicU64,
}

impl Rate {
    /// The value.
    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.bits.load(Ordering::Relaxed))
    }

    /// Sets it, to [`MAX_RATE`] if it is larger. False, and nothing changed, outside (0, 1).
    pub(crate) fn set(&self, rate: f64) -> bool {
        let is_allowed = is_rate(rate);
        if is_allowed {
            self.bits.store(rate.min(MAX_RATE).to_bits(), Ordering::Relaxed);
        }
        is_allowed
    }
}

/// Whether this is a rate at all.
pub(crate) fn is_rate(rate: f64) -> bool {
    rate > 0.0 && rate < 1.0
}

pub(crate) static BF_RATE: Rate =
    Rate { name: c"bf-error-rate", default: c"0.01", bits: AtomicU64::new(0.01f64.to_bits()) };
pub(crate) static BF_CAPACITY: Number = Number::new(c"bf-initial-size", 100, 1, MAX_CAPACITY);
pub(crate) static BF_EXPANSION: Number = Number::new(c"bf-expansion-factor", 2, 0, MAX_EXPANSION);
pub(crate) static CF_BUCKET_SIZE: Number = Number::new(c"cf-bucket-size", 2, 1, 255);
pub(crate) static CF_CAPACITY: Number = Number::new(c"cf-initial-size", 1024, 2, MAX_CAPACITY);
pub(crate) static CF_MAX_ITERATIONS: Number = Number::new(c"cf-max-iterations", 20, 1, 65535);
pub(crate) static CF_EXPANSION: Number = Number::new(c"cf-expansion-factor", 1, 0, MAX_EXPANSION);
pub(crate) static CF_MAX_EXPANSIONS: Number = Number::new(c"cf-max-expansions", 32, 1, 65536);

/// Maximum size of a filter in bytes. 512 MiB is also the default limit of a server for one string, so a filter that can be
/// created can also be moved with DUMP and RESTORE.
pub(crate) static MEMORY_LIMIT: Number = Number::new(c"key-memory-limit", 512 << 20, 64, i64::MAX);

/// About how long a slice of work between commands takes, in microseconds.
pub(crate) static STEP_USEC: Number = Number::new(c"step-usec", 1000, 1, 50_000);

/// A number of bytes with the server's units, which also its settings take: k, m and g are powers of 1000, kb, mb and gb of 1024.
pub(crate) fn parse_bytes(text: &[u8]) -> Option<i64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    std::str::from_utf8(number).ok()?.parse::<i64>().ok()?.checked_mul(factor)
}

/// The settings that RedisBloom has.
pub(crate) static REDISBLOOM_NUMBERS: [&Number; 7] = [
    &BF_CAPACITY,
    &BF_EXPANSION,
    &CF_BUCKET_SIZE,
    &CF_CAPACITY,
    &CF_MAX_ITERATIONS,
    &CF_EXPANSION,
    &CF_MAX_EXPANSIONS,
];

/// The memory limit per key.
pub(crate) fn memory_limit() -> MemoryLimit {
    MemoryLimit::bytes(MEMORY_LIMIT.get() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_units_of_the_server_or_are_none() {
        for (text, bytes) in
            [("0", 0), ("17", 17), ("17b", 17), ("2k", 2000), ("2KB", 2048), ("3Gb", 3 << 30)]
        {
            assert_eq!(parse_bytes(text.as_bytes()), Some(bytes), "{text}");
        }
        for text in [
            "",
            "gb",
            "-1",
            "1 gb",
            "1tb",
            "1.5gb",
            "9223372036854775807kb",
            "99999999999999999999",
        ] {
            assert_eq!(parse_bytes(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn settings_outside_their_range_are_refused_and_change_nothing() {
        static NUMBER: Number = Number::new(c"a", 5, 2, 9);
        assert!(NUMBER.set(9) && NUMBER.set(2));
        assert!(!NUMBER.set(10) && !NUMBER.set(1));
        assert_eq!(NUMBER.get(), 2);
        static RATE: Rate = Rate { name: c"b", default: c"0.1", bits: AtomicU64::new(0) };
        assert!(RATE.set(0.1));
        for wrong in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(!RATE.set(wrong));
        }
        assert_eq!(RATE.get(), 0.1);
        assert!(RATE.set(0.9));
        assert_eq!(RATE.get(), MAX_RATE);
    }
}
