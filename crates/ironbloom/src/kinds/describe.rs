//! Named facts about a filter beyond those that all kinds share, for reports.

/// A fact about a filter, with the name it has in reports.
pub type Fact = (&'static str, FactValue);

/// The value of a [`Fact`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FactValue {
    /// A count.
    Count(u64),
    /// A false-positive rate.
    Rate(f64),
    /// A ratio.
    Ratio(f64),
    /// A yes or no.
    Flag(bool),
    /// A few words.
    Text(String),
    /// A number for each of several names; `None` if unknown.
    Counts(Vec<(String, Option<u64>)>),
}

impl From<u64> for FactValue {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for FactValue {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<bool> for FactValue {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&str> for FactValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
