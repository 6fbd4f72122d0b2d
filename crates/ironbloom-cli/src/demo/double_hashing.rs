//! 10,000 to 100,000 keys at 10 %, before and after the double-hashing "optimisation".

use anyhow::Result;
use ironbloom::{Bloom, BloomParams, HashFn, Scheme, sizing};

use super::{Findings, nanoseconds, numbers};
use crate::number;
use crate::report::{Cell, Record};

const ASKED: f64 = 0.1;
const PROBED: u64 = 2_000_000;
/// The argument for the shortcut is the cost of hashing long keys.
const LONG_KEY: usize = 1000;

pub(super) fn run() -> Result<Findings> {
    let records = (1..=10).map(|step| measure(step * 10_000)).collect::<Result<_>>()?;
    let (many, once) = hashing_times();
    Ok(Findings {
        title: "Double hashing at ten per cent",
        about: format!(
            "A common recipe for 10 % rounds the probes down to 3, and so plans 12.5 %. It then replaces three\n\
             hashes per key by one 32-bit hash and its rotation, as LevelDB does. {} absent keys are looked up.",
            number::count(PROBED)
        ),
        records,
        see: format!(
            "Three hashes meet their theory; 32-bit double hashing is above it and cannot be repaired by more bits.\n\
             Hashing a {LONG_KEY}-byte key three times takes {many:.0} ns, once {once:.0} ns: the saving is real, and\n\
             ironbloom keeps it (one 64-bit hash, one multiplication per probe) without losing the rate."
        ),
    })
}

fn measure(keys: u64) -> Result<Record> {
    // The recipe: k = floor(-lg p), m = k n / ln 2.
    let probes = sizing::probes_for_rate(ASKED).floor() as u32;
    let bits = (f64::from(probes) * keys as f64 / std::f64::consts::LN_2) as u64;
    let recipe = BloomParams::for_bits(bits, probes)?;
    let ours = BloomParams::for_rate(keys, ASKED)?;
    Ok(vec![
        ("keys", Cell::count(keys)),
        ("recipe's theory", Cell::rate(recipe.rate_at(keys))),
        (
            "three hashes",
            Cell::rate(measured_rate(recipe.with_scheme(Scheme::Independent)?, keys)?),
        ),
        ("double hashing", Cell::rate(measured_rate(recipe.with_scheme(Scheme::LevelDb)?, keys)?)),
        ("ironbloom's theory", Cell::rate(ours.rate_at(keys))),
        ("ironbloom", Cell::rate(measured_rate(ours, keys)?)),
    ])
}

fn measured_rate(params: BloomParams, keys: u64) -> Result<f64> {
    let mut bloom = Bloom::new(params, HashFn::default())?;
    for number in numbers(3, keys) {
        bloom.insert(number.to_le_bytes());
    }
    let wrong = numbers(4, PROBED).filter(|number| bloom.contains(number.to_le_bytes())).count();
    Ok(wrong as f64 / PROBED as f64)
}

/// Nanoseconds to hash a long key three times, and once.
fn hashing_times() -> (f64, f64) {
    const ROUNDS: usize = 200_000;
    let key = vec![b'k'; LONG_KEY];
    let time = |hashes: u64| {
        let (time, _) = nanoseconds(ROUNDS, || {
            (0..ROUNDS as u64).fold(0u64, |sum, round| {
                (0..hashes).fold(sum, |sum, seed| {
                    let hash_fn = HashFn::Xxh3 { seed: std::hint::black_box(round ^ seed) };
                    sum.wrapping_add(hash_fn.hash(&key))
                })
            })
        });
        time
    };
    (time(3), time(1))
}
