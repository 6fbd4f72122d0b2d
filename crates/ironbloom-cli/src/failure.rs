//! Errors with advice: what went wrong, and, where there is one, what to try.

use std::fmt;
use std::path::Path;

use ironbloom::any::{Operation, Refused};
use ironbloom::{DecodeError, FileError, Mismatch, ParamError, RowError};
#[cfg(feature = "index")]
use ironbloom_index::{ConditionError, IndexedError, Literal, TableError};

use crate::foreign;

/// An error message with a hint.
#[derive(Debug)]
pub(crate) struct Advice {
    message: String,
    hint: String,
}

impl Advice {
    pub(crate) fn error(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        Self { message: message.into(), hint: hint.into() }.into()
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Advice {}

/// The error and its causes, each said once: some libraries repeat in a message what caused it.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// The hint for an error, if there is something a person can do.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(advice) = cause.downcast_ref::<Advice>() {
            return Some(advice.hint.clone());
        }
        if let Some(error) = cause.downcast_ref::<ParamError>() {
            return param_hint(error).map(str::to_owned);
        }
        if let Some(FileError::Decode { path, error: DecodeError::NotAFilter }) =
            cause.downcast_ref()
        {
            return Some(not_a_filter_hint(path));
        }
        #[cfg(feature = "index")]
        if let Some(IndexedError::Table(TableError::Grown { path, .. })) = cause.downcast_ref() {
            let path = path.display();
            return Some(format!("`ironbloom index append INDEX {path}` indexes its new rows"));
        }
        #[cfg(feature = "index")]
        if let Some(ConditionError::Type { data_type, literal: Literal::Number(number), .. }) =
            cause.downcast_ref()
            && data_type.is_string()
        {
            return Some(format!(
                "text is compared with '{number}' in single quotes; if this column of a CSV file has numbers, and words such \
                 as NA for missing ones, build the index with --null NA"
            ));
        }
        if let Some(RowError::Full(_)) = cause.downcast_ref::<RowError>() {
            return Some(LARGER.to_owned());
        }
        refusal_hint(cause.downcast_ref::<Refused>()?).map(str::to_owned)
    })
}

fn not_a_filter_hint(path: &Path) -> String {
    foreign::format_of(path).map_or_else(
        || "filters are made by `ironbloom build`, and are named before the files of keys".to_owned(),
        |format| {
            format!(
                "it is a filter of another program ({format}): `ironbloom convert` makes an .ibf file of it"
            )
        },
    )
}

const LARGER: &str = "build it with a larger --capacity";

fn param_hint(error: &ParamError) -> Option<&'static str> {
    Some(match error {
        ParamError::Rate { .. } => "write a rate as 1%, 0.01, 1e-6 or 1/1000",
        ParamError::RateBelowHash { .. } => {
            "ask for a higher rate; --kind bloom reaches the lowest (see `ironbloom plan`)"
        }
        ParamError::Memory { .. } => {
            "ask for a smaller capacity or a higher rate; `ironbloom plan` shows what fits a given --memory"
        }
        _ => return None,
    })
}

fn refusal_hint(error: &Refused) -> Option<&'static str> {
    Some(match error {
        Refused::Unsupported { operation: Operation::Remove, .. } => {
            "counting, d-left, cuckoo, bitmap and joint filters can remove"
        }
        Refused::Unsupported { operation: Operation::Merge, .. } => {
            "build one filter from all inputs, or use --kind bloom or blocked, which merge"
        }
        Refused::Unsupported { operation: Operation::Intersect, .. } => {
            "bloom, blocked, split-block and bitmap filters can be intersected"
        }
        Refused::Unsupported { .. } => "build it again from all keys",
        Refused::Mismatch(mismatch) if mismatch.what == Mismatch::STAGES => {
            "scalable filters merge if they have grown alike: give each the --capacity of the whole"
        }
        Refused::Mismatch(_) => {
            "filters merge if built with the same --kind, --capacity, --rate and --seed"
        }
        Refused::Full(_) => LARGER,
        Refused::OutOfBounds(_) => {
            "a bitmap holds integers below its --capacity: build it with a larger one"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context as _, anyhow};

    #[test]
    fn causes_are_told_once() {
        let error = anyhow!("refused").context("refused").context("a server: refused");
        assert_eq!(message(&error), "a server: refused");
        let error = Err::<(), _>(anyhow!("not there")).context("a.ibf").unwrap_err();
        assert_eq!(message(&error), "a.ibf: not there");
    }
}
