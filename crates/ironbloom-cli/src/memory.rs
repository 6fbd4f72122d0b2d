//! What `dedup` remembers: the hashes themselves while they are few, then a filter that grows; or a window.
//!
//! A filter made for a million keys is right for large inputs, where few stages are to be asked, and a waste for three
//! keys. So the first keys are kept exactly, and a filter is made when there are many, or when a state is saved: then
//! of the size that they need.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::Path;

use anyhow::{Result, bail};
use ironbloom::any::{AnyFilter, KeyHash};
use ironbloom::{
    HashFn, ParamError, Persist as _, Scalable, ScalableParams, StageKind, Windowed, WindowedParams,
};

use crate::failure::Advice;
use crate::file;

const DEFAULT_RATE: f64 = 1e-6;

/// Keys the first stage holds for large inputs, and how much larger each next one is: few stages to look into.
const FIRST_STAGE: u64 = 1_000_000;
const GROWTH: u64 = 4;

/// Keys that are kept as they are, in less memory than a filter of [`FIRST_STAGE`].
const MOST_FEW: u64 = FIRST_STAGE / GROWTH;

/// The least first stage of a state, some 9 KB. It grows over its first stages to those of large inputs.
const LEAST_STAGE: u64 = FIRST_STAGE / GROWTH.pow(5);

/// The first stage of a state with this many keys: one from which stages grow to [`FIRST_STAGE`].
fn first_stage(keys: u64) -> u64 {
    let mut stage = FIRST_STAGE;
    while stage / GROWTH >= keys.max(LEAST_STAGE) {
        stage /= GROWTH;
    }
    stage
}

fn params(first_stage: u64, rate: f64) -> Result<ScalableParams, ParamError> {
    let params = ScalableParams::new(first_stage, rate)?;
    Ok(params.with_growth(GROWTH)?.with_stages_of(StageKind::Blocked))
}

/// For a set of hashes, which need not be hashed again.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Some hashes, exactly.
pub(crate) struct Few {
    rate: f64,
    seen: HashSet<u64, BuildHasherDefault<AsItIs>>,
    in_order: Vec<u64>,
}

impl Few {
    fn insert_each(&mut self, hashes: &[u64], new: &mut [bool]) {
        for (&hash, new) in hashes.iter().zip(new) {
            *new = self.seen.insert(hash);
            if *new {
                self.in_order.push(hash);
            }
        }
    }

    /// The same keys in a filter that grows.
    fn grown(&self, first_stage: u64) -> Result<Scalable, ParamError> {
        let mut filter = Scalable::new(params(first_stage, self.rate)?, HashFn::default())?;
        filter.insert_hashes(&self.in_order)?;
        Ok(filter)
    }
}

/// What remembers the keys.
pub(crate) enum Memory {
    Few(Few),
    All(Scalable),
    Window(Windowed),
}

impl Memory {
    fn new(window: Option<u64>, rate: Option<f64>) -> Result<Self, ParamError> {
        let rate = rate.unwrap_or(DEFAULT_RATE);
        Ok(match window {
            Some(window) => Self::Window(Windowed::new(
                WindowedParams::for_keys(window, rate)?,
                HashFn::default(),
            )?),
            None => {
                params(FIRST_STAGE, rate)?; // a rate that cannot be held is refused now
                Self::Few(Few { rate, seen: HashSet::default(), in_order: Vec::new() })
            }
        })
    }

    /// The memory of an earlier run, or a new one if there was none.
    pub(crate) fn open(
        state: Option<&Path>,
        window: Option<u64>,
        rate: Option<f64>,
    ) -> Result<Self> {
        let Some(path) = state else { return Ok(Self::new(window, rate)?) };
        let memory = match AnyFilter::load(path) {
            Err(error) if file::is_missing(&error) => return Ok(Self::new(window, rate)?),
            Err(error) => return Err(error.into()),
            Ok(AnyFilter::Scalable(filter)) => Self::All(filter),
            Ok(AnyFilter::Windowed(filter)) => Self::Window(filter),
            Ok(other) => {
                return Err(Advice::error(
                    format!(
                        "{}: holds a {} filter, not a dedup state",
                        path.display(),
                        other.kind()
                    ),
                    "name a new file, and dedup will create it",
                ));
            }
        };
        KeyHash::Hash(memory.hash_fn()).of(b"").map_err(|error| file::named(path, error))?;
        memory.refuse_other_options(window, rate).map_err(|error| file::named(path, error))?;
        Ok(memory)
    }

    /// A state was made with its own options; others given now would silently not be followed.
    fn refuse_other_options(&self, window: Option<u64>, rate: Option<f64>) -> Result<()> {
        match (self, window, rate) {
            (Self::All(_), Some(asked), _) => {
                bail!("remembers all keys, but --window {asked} was asked for")
            }
            (Self::Window(filter), Some(asked), _) if asked != filter.params().capacity() => {
                let made = filter.params().capacity();
                bail!("was made with --window {made}, but --window {asked} was asked for")
            }
            (Self::All(filter), _, Some(asked)) if asked != filter.params().rate() => {
                let made = filter.params().rate();
                bail!("was made with --rate {made}, but --rate {asked} was asked for")
            }
            (Self::Window(filter), _, Some(asked)) => {
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

    pub(crate) fn hash_fn(&self) -> HashFn {
        match self {
            Self::Few(_) => HashFn::default(),
            Self::All(filter) => filter.hash_fn(),
            Self::Window(filter) => filter.hash_fn(),
        }
    }

    /// Takes keys in their order; `new[i]` tells whether `hashes[i]` came for the first time.
    pub(crate) fn insert_each(
        &mut self,
        hashes: &[u64],
        new: &mut [bool],
    ) -> Result<(), ParamError> {
        match self {
            Self::Few(few) => {
                few.insert_each(hashes, new);
                if few.in_order.len() as u64 > MOST_FEW {
                    *self = Self::All(few.grown(FIRST_STAGE)?);
                }
                Ok(())
            }
            Self::All(filter) => filter.insert_each(hashes, new),
            Self::Window(filter) => {
                filter.insert_each(hashes, new);
                Ok(())
            }
        }
    }

    /// The state to be saved.
    pub(crate) fn into_filter(self) -> Result<AnyFilter, ParamError> {
        Ok(match self {
            Self::Few(few) => {
                AnyFilter::Scalable(few.grown(first_stage(few.in_order.len() as u64))?)
            }
            Self::All(filter) => AnyFilter::Scalable(filter),
            Self::Window(filter) => AnyFilter::Windowed(filter),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stage_holds_the_keys_and_leads_to_the_stages_of_large_inputs() {
        for keys in [0, 1, 3, 976, 977, 5_000, 60_000, 250_000, 250_001] {
            let stage = first_stage(keys);
            assert!(
                stage >= keys && (LEAST_STAGE..=FIRST_STAGE).contains(&stage),
                "{keys}: {stage}"
            );
            assert!(stage / GROWTH < keys.max(LEAST_STAGE), "{keys}: {stage} is too large");
        }
    }

    #[test]
    fn few_keys_and_many_are_told_apart_alike() {
        let mut memory = Memory::new(None, None).unwrap();
        let hash = |i: u64| HashFn::default().hash(i.to_le_bytes());
        let mut distinct = 0;
        // Each key twice, over the boundary between the two.
        for block in 0..40u64 {
            let hashes: Vec<u64> = (block * 8_000..block * 8_000 + 16_000).map(hash).collect();
            let mut new = vec![false; hashes.len()];
            memory.insert_each(&hashes, &mut new).unwrap();
            assert!(block == 0 || new[..8_000].iter().all(|&new| !new), "block {block}");
            distinct += new.iter().filter(|&&new| new).count();
        }
        assert!(matches!(memory, Memory::All(_)));
        assert!((327_995..=328_000).contains(&distinct), "{distinct}"); // one in a million may be lost
    }
}
