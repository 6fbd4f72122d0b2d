//! The plan of a filter that grows: how large and how strict each of its stages is.

use super::stage::{Stage, StageKind};
use crate::error::{DecodeError, MAX_CAPACITY, ParamError, check_range, check_rate};
use crate::hash::HashFn;
use crate::kernel::LINE_BYTES;
use crate::kinds::blocked::{BlockedBloom, BlockedBloomParams};
use crate::kinds::bloom::{Bloom, BloomParams};
use crate::sizing;

/// Maximum number of stages. Each is at least twice as large as the one before, so memory runs out first.
pub(super) const MAX_STAGES: usize = 64;

/// Maximum factor between the capacities of two stages.
const MAX_GROWTH: u64 = 16;

/// The validated plan of a [`Scalable`](crate::Scalable): plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalableParams {
    pub(super) initial_capacity: u64,
    rate: f64,
    growth: u64,
    tightening: f64,
    stages_of: StageKind,
}

impl ScalableParams {
    /// Plans a chain that starts with room for `initial_capacity` keys and keeps `rate` however far it grows: each
    /// stage is twice as large as the previous one and has 0.85 times its rate.
    pub fn new(initial_capacity: u64, rate: f64) -> Result<Self, ParamError> {
        check_rate(initial_capacity, rate)?;
        let stages_of = StageKind::default();
        Ok(Self { initial_capacity, rate, growth: 2, tightening: 0.85, stages_of })
    }

    /// Sets the factor between the capacities of two stages, 2 to 16. A larger factor means fewer stages to query and
    /// more unused room while the last one fills.
    pub fn with_growth(mut self, growth: u64) -> Result<Self, ParamError> {
        check_range("growth", growth, 2, MAX_GROWTH)?;
        self.growth = growth;
        Ok(self)
    }

    /// Sets the factor between the rates of two stages, in (0, 1). Small factors are cheap at first and expensive after
    /// a few stages.
    pub fn with_tightening(mut self, tightening: f64) -> Result<Self, ParamError> {
        if !(tightening > 0.0 && tightening < 1.0) {
            let what = "tightening";
            return Err(ParamError::Ratio { what, value: tightening, above: 0.0, below: 1.0 });
        }
        self.tightening = tightening;
        Ok(self)
    }

    /// Sets the kind of the stages.
    pub fn with_stages_of(mut self, kind: StageKind) -> Self {
        self.stages_of = kind;
        self
    }

    /// Capacity of the first stage.
    pub fn initial_capacity(&self) -> u64 {
        self.initial_capacity
    }

    /// The rate of the whole chain, P.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Factor between the capacities of two stages, s.
    pub fn growth(&self) -> u64 {
        self.growth
    }

    /// Factor between the rates of two stages, r.
    pub fn tightening(&self) -> f64 {
        self.tightening
    }

    /// The requested kind of stages.
    pub fn stages_of(&self) -> StageKind {
        self.stages_of
    }

    /// The planned rate of stage `i`, counted from 0.
    pub fn stage_rate(&self, i: u32) -> f64 {
        sizing::scalable_stage_rate(self.rate, self.tightening, i)
    }

    /// Capacity of stage `i`, counted from 0.
    pub fn stage_capacity(&self, i: u32) -> u64 {
        self.growth.saturating_pow(i).saturating_mul(self.initial_capacity).min(MAX_CAPACITY)
    }

    /// Size in bytes of stage `i`, counted from 0: the memory needed to grow to it.
    pub fn stage_bytes(&self, i: usize) -> Result<u64, ParamError> {
        let bits = match self.stage_params(i)? {
            StageParams::Bloom(params) => params.bits(),
            StageParams::Blocked(params) => params.bits(),
        };
        Ok(bits.div_ceil(8 * LINE_BYTES as u64).saturating_mul(LINE_BYTES as u64))
    }

    /// The shape of stage `i`. The module documentation explains why its kind or rate may differ from the series.
    pub(super) fn stage_params(&self, i: usize) -> Result<StageParams, ParamError> {
        check_range("stages", i as u64 + 1, 1, MAX_STAGES as u64)?;
        let i = i as u32;
        let capacity = self.stage_capacity(i);
        let rate = self.stage_rate(i).max(sizing::hash_floor(capacity));
        if self.stages_of == StageKind::Blocked
            && let Ok(params) = BlockedBloomParams::for_rate(capacity, rate)
        {
            return Ok(StageParams::Blocked(params));
        }
        Ok(StageParams::Bloom(BloomParams::segmented_for_rate(capacity, rate)?))
    }

    /// Creates stage `i`, empty.
    pub(super) fn stage(&self, i: usize, hash_fn: HashFn) -> Result<Stage, ParamError> {
        Ok(match self.stage_params(i)? {
            StageParams::Bloom(params) => Stage::Bloom(Bloom::new(params, hash_fn)?),
            StageParams::Blocked(params) => Stage::Blocked(BlockedBloom::new(params, hash_fn)?),
        })
    }

    /// The parameters as stored in a file; the initial capacity is the header's.
    pub(super) fn encode(&self) -> [u64; 4] {
        let kind = u64::from(self.stages_of == StageKind::Blocked);
        [self.rate.to_bits(), self.growth, self.tightening.to_bits(), kind]
    }

    /// Reads the parameters from a file, each validated before use.
    pub(super) fn decode(fields: [u64; 4], initial_capacity: u64) -> Result<Self, DecodeError> {
        let [rate, growth, tightening, kind] = fields;
        let kind = match kind {
            0 => StageKind::Bloom,
            1 => StageKind::Blocked,
            value => return Err(DecodeError::Invalid { what: "stage kind", value }),
        };
        Ok(Self::new(initial_capacity, f64::from_bits(rate))?
            .with_growth(growth)?
            .with_tightening(f64::from_bits(tightening))?
            .with_stages_of(kind))
    }
}

/// The shape of a stage.
pub(super) enum StageParams {
    Bloom(BloomParams),
    Blocked(BlockedBloomParams),
}
