//! A windowed filter: shape, clock and youngest slice; the payload is slices, then a count for each. The number of
//! keys must be the sum of the counts of the generations remembered, so it is summed up here.
#![no_main]

use std::time::Duration;

use ironbloom::any::AnyFilter;
use ironbloom::{Kind, Windowed};
use ironbloom_fuzz::{Forged, Number, exercise, some_hashes};
use libfuzzer_sys::fuzz_target;

const MOST_BITS: u64 = 1 << 16;

fuzz_target!(|input: ([Number; 4], Forged)| {
    let (counts, forged) = input;
    let [probes, ages, _, slice_bits, _, youngest, ..] = forged.words();
    let slices = probes.saturating_add(ages);
    if !(2..=48).contains(&slices) || slices.saturating_mul(slice_bits) > MOST_BITS {
        return;
    }
    let bytes = (slices * slice_bits).div_ceil(64) * 8;
    let mut payload: Vec<u8> =
        forged.payload.iter().chain(&[0]).copied().cycle().take(bytes as usize).collect();
    let count = |slice: u64| counts[slice as usize % counts.len()].word();
    payload.extend((0..slices).flat_map(|slice| count(slice).to_le_bytes()));
    let remembered = (0..=ages).map(|age| count(youngest.wrapping_add(age) % slices));
    let len = Number::Any(remembered.fold(0, u64::saturating_add));
    let forged = Forged { len, payload: &payload, ..forged };
    let Some((mut windowed, file)) = forged.decode::<Windowed>(Kind::Windowed, 9) else { return };
    exercise(AnyFilter::Windowed(windowed.clone()), &file);
    let hashes = some_hashes();
    windowed.insert_each(&hashes, &mut vec![false; hashes.len()]);
    for seconds in [0, 1, forged.seed, u64::MAX] {
        windowed.advance_to(Duration::from_secs(seconds));
        windowed.insert_hash(forged.seed);
        assert!(windowed.contains_hash(forged.seed));
    }
    windowed.clear();
    assert_eq!((windowed.len(), windowed.estimate_len()), (0, 0.0));
});
