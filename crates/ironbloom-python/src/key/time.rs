//! Days, moments, times of day and spans as keys.
//!
//! Midnight without a time zone is the key of its day: numpy finds `datetime64[D]` equal to a `date` and to midnight in
//! `datetime64[ns]`, which is equal to a `datetime`, so all four must be found for each other.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyTime, PyTimeAccess};

use super::{OTHER, Owned, invalid};

const DAY: i128 = 86_400_000_000_000;

/// Kinds of time that are counted in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nanos {
    /// A moment of UTC.
    Moment,
    /// The time on a clock and a calendar whose zone is not known.
    Clock,
    /// A time between two moments.
    Span,
    /// A time of day on a clock whose zone is not known.
    OfDay,
    /// A time of day of UTC.
    OfUtcDay,
}

/// The bytes of a key that are few.
pub(crate) struct Short {
    bytes: [u8; 18],
    len: usize,
}

impl Short {
    fn new(tag: u8, payload: &[u8]) -> Self {
        let mut bytes = [0; 18];
        bytes[..2].copy_from_slice(&[OTHER, tag]);
        bytes[2..2 + payload.len()].copy_from_slice(payload);
        Self { bytes, len: 2 + payload.len() }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl From<Short> for Owned {
    fn from(short: Short) -> Self {
        Self::Value(short.as_slice().to_vec())
    }
}

/// The key of a day.
#[inline]
pub(crate) fn date_key(days: i64) -> Short {
    Short::new(b'd', &days.to_le_bytes())
}

/// The key of nanoseconds.
#[inline]
pub(crate) fn nanos_key(what: Nanos, nanos: i128) -> Short {
    match what {
        Nanos::Moment => Short::new(b't', &nanos.to_le_bytes()),
        Nanos::Clock if is_midnight(nanos) => date_key((nanos / DAY) as i64),
        Nanos::Clock => Short::new(b'T', &nanos.to_le_bytes()),
        Nanos::Span => Short::new(b'e', &nanos.to_le_bytes()),
        Nanos::OfDay => Short::new(b'c', &(nanos as i64).to_le_bytes()),
        Nanos::OfUtcDay => Short::new(b'z', &(nanos as i64).to_le_bytes()),
    }
}

/// Divisions of 128 bits are slow, and times of this century need 64.
#[inline]
fn is_midnight(nanos: i128) -> bool {
    match i64::try_from(nanos) {
        Ok(nanos) => nanos % DAY as i64 == 0,
        Err(_) => nanos % DAY == 0,
    }
}

pub(super) fn date(date: &Bound<'_, PyDate>) -> Owned {
    date_key(days(date)).into()
}

pub(super) fn date_time(moment: &Bound<'_, PyDateTime>) -> PyResult<Owned> {
    let micros = i128::from(days(moment)) * 86_400_000_000 + micros_of_day(moment);
    let offset = moment.call_method0(intern!(moment.py(), "utcoffset"))?;
    let (what, micros) = match offset.cast::<PyDelta>() {
        Ok(offset) => (Nanos::Moment, micros - microseconds(offset)),
        Err(_) => (Nanos::Clock, micros),
    };
    Ok(nanos_key(what, micros * 1000 + extra_nanoseconds(moment)?).into())
}

pub(super) fn time(time: &Bound<'_, PyTime>) -> PyResult<Owned> {
    let micros = micros_of_day(time);
    let offset = time.call_method0(intern!(time.py(), "utcoffset"))?;
    let (what, micros) = match offset.cast::<PyDelta>() {
        Ok(offset) => (Nanos::OfUtcDay, micros - microseconds(offset)),
        Err(_) => (Nanos::OfDay, micros),
    };
    Ok(nanos_key(what, micros * 1000).into())
}

pub(super) fn span(span: &Bound<'_, PyDelta>) -> PyResult<Owned> {
    let nanos = microseconds(span) * 1000 + extra_nanoseconds(span)?;
    Ok(nanos_key(Nanos::Span, nanos).into())
}

fn micros_of_day(time: &impl PyTimeAccess) -> i128 {
    let minutes = i128::from(time.get_hour()) * 60 + i128::from(time.get_minute());
    let seconds = minutes * 60 + i128::from(time.get_second());
    seconds * 1_000_000 + i128::from(time.get_microsecond())
}

/// Days since 1970-01-01, in the proleptic Gregorian calendar that Python uses.
fn days(date: &impl PyDateAccess) -> i64 {
    days_from_civil(i64::from(date.get_year()), date.get_month().into(), date.get_day().into())
}

/// Howard Hinnant's `days_from_civil`: years begin in March, so that a leap day is the last of its year.
/// 2000-03-01 is day 11,017.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn microseconds(span: &Bound<'_, PyDelta>) -> i128 {
    let seconds = i128::from(span.get_days()) * 86_400 + i128::from(span.get_seconds());
    seconds * 1_000_000 + i128::from(span.get_microseconds())
}

/// Nanoseconds that pandas' `Timestamp` and `Timedelta` have beyond microseconds.
fn extra_nanoseconds(value: &Bound<'_, PyAny>) -> PyResult<i128> {
    let py = value.py();
    for name in [intern!(py, "nanosecond"), intern!(py, "nanoseconds")] {
        if let Some(nanos) = value.getattr_opt(name)? {
            return nanos.extract();
        }
    }
    Ok(0)
}

/// The unit of a `datetime64` or `timedelta64` of numpy.
#[derive(Clone, Copy)]
pub(crate) struct NumpyUnit {
    what: Nanos,
    /// Nanoseconds of a step; months, if they have no fixed length.
    step: Result<i128, i64>,
}

impl NumpyUnit {
    /// `kind` is M or m, `unit` and `steps` are what `numpy.datetime_data` says.
    pub(crate) fn new(py: Python<'_>, kind: &str, unit: &str, steps: i64) -> PyResult<Self> {
        let what = if kind == "M" { Nanos::Clock } else { Nanos::Span };
        let step = match (what, unit) {
            (_, "ns") => Ok(1),
            (_, "us") => Ok(1_000),
            (_, "ms") => Ok(1_000_000),
            (_, "s") => Ok(1_000_000_000),
            (_, "m") => Ok(60_000_000_000),
            (_, "h") => Ok(3_600_000_000_000),
            (_, "D") => Ok(DAY),
            (_, "W") => Ok(7 * DAY),
            (Nanos::Clock, "M") => Err(1),
            (Nanos::Clock, "Y") => Err(12),
            _ => {
                let what = format!(
                    "numpy's times in units of {unit} have no stable bytes: convert them to \
                     datetime64[D], [s], [ms], [us] or [ns]"
                );
                return Err(invalid(py, what));
            }
        };
        let step = match step {
            Ok(nanos) => Ok(nanos * i128::from(steps)),
            Err(months) => Err(i64::saturating_mul(months, steps)),
        };
        Ok(Self { what, step })
    }

    /// The key of this many steps; `None` for what is not a time (NaT).
    #[inline]
    pub(crate) fn key(self, count: i64) -> Option<Short> {
        if count == i64::MIN {
            return None;
        }
        Some(match self.step {
            Ok(step) => nanos_key(self.what, i128::from(count).saturating_mul(step)),
            Err(months) => {
                let months = i128::from(count) * i128::from(months);
                let (year, month) = (1970 + months.div_euclid(12), months.rem_euclid(12));
                // Beyond, numpy itself has no days for them.
                let year = year.clamp(-(1 << 50), 1 << 50) as i64;
                date_key(days_from_civil(year, month as i64 + 1, 1))
            }
        })
    }
}
