//! A scalable filter: its plan, then a table with a line for each stage. The capacity of a stage is the planned one
//! and its size that of its bits unless the fuzzer says otherwise: nearly all other tables are refused at once.
#![no_main]

use arbitrary::Arbitrary;
use ironbloom::any::AnyFilter;
use ironbloom::{Kind, Scalable};
use ironbloom_fuzz::{Forged, Number, exercise, some_hashes};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Stage {
    blocked: bool,
    len: u16,
    capacity: Option<Number>,
    lines: Option<Number>,
    params: [Number; 4],
}

const MOST_LINES: u64 = 128;

fuzz_target!(|input: ([Number; 4], Vec<Stage>, Forged)| {
    let (plan, stages, forged) = input;
    let (mut table, mut words) = (Vec::new(), Vec::new());
    let noise =
        forged.payload.chunks_exact(8).map(|bytes| bytes.try_into().map(u64::from_le_bytes));
    let mut noise = noise.flatten().chain([0]).cycle();
    let mut len = 0;
    for (i, stage) in stages.iter().enumerate() {
        let mut params = stage.params.map(Number::word);
        let growth = plan[1].word().saturating_pow(i as u32);
        let planned = forged.capacity.word().saturating_mul(growth);
        let capacity = stage.capacity.map_or(planned, Number::word);
        let (kind, bits) = if stage.blocked {
            params[1..].fill(0);
            (Kind::Blocked, params[0].saturating_mul(512))
        } else {
            (Kind::Bloom, params[0])
        };
        let lines = stage.lines.map_or(bits.div_ceil(512), Number::word);
        let stage_len = u64::from(stage.len).min(capacity);
        len += stage_len;
        table.extend([kind as u64, stage_len, capacity, lines].into_iter().chain(params));
        // Zeros after the last bit.
        words.extend((0..8 * lines.min(MOST_LINES)).map(|word| {
            let left = bits.saturating_sub(64 * word).min(64) as u32;
            noise.next().unwrap_or(0) & u64::MAX.checked_shr(64 - left).unwrap_or(0)
        }));
    }
    let payload: Vec<u8> = table.into_iter().chain(words).flat_map(u64::to_le_bytes).collect();
    let mut params = forged.params;
    params[..4].copy_from_slice(&plan);
    params[4] = Number::Byte(stages.len() as u8);
    let forged = Forged { len: Number::Any(len), params, payload: &payload, ..forged };
    let Some((mut scalable, file)) = forged.decode::<Scalable>(Kind::Scalable, 5) else { return };
    exercise(AnyFilter::Scalable(scalable.clone()), &file);
    let hashes = some_hashes();
    let mut new = vec![false; hashes.len()];
    let _ = scalable.insert_each(&hashes, &mut new);
    scalable.clear();
    assert_eq!((scalable.len(), scalable.stages().len()), (0, 1));
});
