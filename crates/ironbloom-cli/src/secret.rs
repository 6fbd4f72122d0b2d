//! `--secret-file`: the key of a hash that strangers must not know.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use ironbloom::any::AnyFilter;
use ironbloom::{HashFn, HashKey, Persist as _};

use crate::dash;
use crate::failure::Advice;

/// Where the secret key of the hash is.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SecretArgs {
    /// Hash under the secret key in this file: 16 bytes, or 32 hexadecimal digits. The filter does not contain it, and is
    /// asked with the same option
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

impl SecretArgs {
    /// The key, if one is given.
    pub(crate) fn key(&self) -> Result<Option<HashKey>> {
        let Some(path) = &self.secret_file else { return Ok(None) };
        // No more than tells that it is too long: a device may have no end.
        const MOST: u64 = 1024;
        let mut contents = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MOST).read_to_end(&mut contents))
            .map_err(|error| Advice::error(format!("{}: {error}", path.display()), HOW_TO_MAKE))?;
        match HashKey::parse(&contents) {
            Some(key) => Ok(Some(key)),
            None => Err(Advice::error(
                format!("{}: is not 16 bytes or 32 hexadecimal digits", path.display()),
                HOW_TO_MAKE,
            )),
        }
    }

    /// Reads a filter, with the key if one is given.
    pub(crate) fn load(&self, path: &Path) -> Result<AnyFilter> {
        match (self.key()?, dash::is(path)) {
            (None, true) => dash::read(),
            (None, false) => Ok(AnyFilter::load(path)?),
            (Some(key), true) => {
                AnyFilter::from_bytes_with_key(&dash::bytes()?, key).context("standard input")
            }
            (Some(key), false) => Ok(AnyFilter::load_with_key(path, key)?),
        }
    }
}

const HOW_TO_MAKE: &str =
    "a key is made once, and kept from others:\n      head -c 16 /dev/urandom > FILE";

/// The seed of a filter: a number, or a random key that the filter contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seed {
    Number(u64),
    Random,
}

pub(crate) fn parse_seed(text: &str) -> Result<Seed, String> {
    match text {
        "random" => Ok(Seed::Random),
        number => number.parse().map(Seed::Number).map_err(|_| {
            "a seed is a number below 2^64, or `random` for a secret of this filter alone"
                .to_owned()
        }),
    }
}

impl Seed {
    /// The function with this seed: `usual` with a number, or keyed.
    pub(crate) fn hash_fn(self, key: Option<HashKey>, usual: impl FnOnce(u64) -> HashFn) -> HashFn {
        match (key, self) {
            (Some(key), _) => HashFn::secret(key),
            (None, Self::Random) => HashFn::random(),
            (None, Self::Number(seed)) => usual(seed),
        }
    }
}
