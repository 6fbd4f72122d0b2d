//! The state file of `dedup`: a filter of the keys seen so far.

use std::path::Path;

use anyhow::{Result, bail};
use ironbloom::any::AnyFilter;
use ironbloom::dedup::Deduplicator;
use ironbloom::{HashFn, HashKey, Persist as _, WindowedParams};

use crate::failure::Advice;
use crate::file;
use crate::secret::SecretArgs;

const DEFAULT_RATE: f64 = 1e-6;

/// Opens what an earlier run remembered; empty if there was no such run.
pub(crate) fn open(
    state: Option<&Path>,
    window: Option<u64>,
    rate: Option<f64>,
    secret: &SecretArgs,
) -> Result<Deduplicator> {
    let key = secret.key()?;
    let Some(path) = state else { return new(window, rate, key) };
    let loaded = match key {
        Some(key) => AnyFilter::load_with_key(path, key),
        None => AnyFilter::load(path),
    };
    let filter = match loaded {
        Err(error) if file::is_missing(&error) => return new(window, rate, key),
        loaded => loaded?,
    };
    let takes_text = file::text_hash(path, &filter, None);
    refuse_other_options(&filter, window, rate).map_err(|error| file::named(path, error))?;
    let seen = Deduplicator::from_filter(filter).map_err(|other| {
        Advice::error(
            format!("{}: holds a {} filter, not a dedup state", path.display(), other.kind()),
            "name a new file, and dedup will create it",
        )
    })?;
    takes_text?;
    Ok(seen)
}

fn new(window: Option<u64>, rate: Option<f64>, key: Option<HashKey>) -> Result<Deduplicator> {
    let rate = rate.unwrap_or(DEFAULT_RATE);
    let hash_fn = key.map_or_else(HashFn::random, HashFn::secret);
    Ok(match window {
        Some(keys) => Deduplicator::of_window_with(keys, rate, hash_fn)?,
        None => Deduplicator::of_all_with(rate, hash_fn)?,
    })
}

/// A state was made with its own options; different ones would silently be ignored.
fn refuse_other_options(filter: &AnyFilter, window: Option<u64>, rate: Option<f64>) -> Result<()> {
    match (filter, window, rate) {
        (AnyFilter::Scalable(_), Some(asked), _) => {
            bail!("remembers all keys, but --window {asked} was asked for")
        }
        (AnyFilter::Windowed(filter), Some(asked), _) if asked != filter.params().capacity() => {
            let made = filter.params().capacity();
            bail!("was made with --window {made}, but --window {asked} was asked for")
        }
        (AnyFilter::Scalable(filter), _, Some(asked)) if asked != filter.params().rate() => {
            let made = filter.params().rate();
            bail!("was made with --rate {made}, but --rate {asked} was asked for")
        }
        (AnyFilter::Windowed(filter), _, Some(asked)) => {
            let params = filter.params();
            if WindowedParams::for_keys(params.capacity(), asked)? != params {
                bail!(
                    "was made with another rate ({:e}), but --rate {asked} was asked for",
                    params.rate()
                )
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
