//! BF.CARD, BF.INFO, BF.DEBUG, CF.INFO and CF.DEBUG.

use std::ffi::CStr;

use ironbloom::{Fill, FillProgress};

use crate::engine::blocked::Waiting;
use crate::engine::call::Call;
use crate::engine::key::{Access, ByLayout, Found, Key};
use crate::native::Imaged;
use crate::redisbloom::chain::Scaling;
use crate::redisbloom::debug;
use crate::stats;

use super::count::Count;
use super::filter::{Bloom, Cuckoo, bloom, cuckoo};
use super::{Refusal, check_arity, expect_filter, settle, text};

/// Filters up to this size are counted at once, which takes about two milliseconds.
const SMALL_BYTES: u64 = 4 << 20;

/// `BF.CARD key`
pub(crate) fn bloom_card(call: &Call<'_>) {
    settle(call, try_card(call));
}

fn try_card(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let key = call.open(1, Access::Read);
    let len = match bloom(&key)? {
        Found::Missing => 0,
        found => match expect_filter(found)? {
            ByLayout::RedisBloom(chain) => chain.len(),
            ByLayout::Native(filter) => filter.len(),
        },
    };
    call.reply_integer(len as i64);
    Ok(())
}

/// A field of BF.INFO: the word that asks for it, its name, and its value.
struct Field {
    word: &'static str,
    name: &'static CStr,
    /// Nothing for the expansion of a filter that does not grow.
    value: Option<u64>,
}

fn fields(filter: &Bloom<'_>) -> [Field; 5] {
    let (capacity, size, filters, len, expansion) = match filter {
        ByLayout::RedisBloom(chain) => {
            let expansion = match chain.scaling() {
                Scaling::Growing(growth) => Some(u64::from(growth)),
                Scaling::Fixed(_) => None,
            };
            let links = chain.links().len() as u64;
            (chain.capacity(), chain.size_in_bytes(), links, chain.len(), expansion)
        }
        ByLayout::Native(filter) => {
            let (size, stages) = (filter.array_bytes(), filter.stages());
            (filter.capacity(), size, stages, filter.len(), filter.growth())
        }
    };
    let field = |word, name, value| Field { word, name, value };
    [
        field("CAPACITY", c"Capacity", Some(capacity)),
        field("SIZE", c"Size", Some(size)),
        field("FILTERS", c"Number of filters", Some(filters)),
        field("ITEMS", c"Number of items inserted", Some(len)),
        field("EXPANSION", c"Expansion rate", expansion),
    ]
}

/// `BF.INFO key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION | FULL]`
pub(crate) fn bloom_info(call: &Call<'_>) {
    stats::timed(|| settle(call, try_bloom_info(call)));
}

fn try_bloom_info(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity((2..=3).contains(&call.count()))?;
    let key = call.open(1, Access::Read);
    let filter = expect_filter(bloom(&key)?)?;
    if call.count() == 3 && call.arg(2).eq_ignore_ascii_case(b"FULL") {
        full(call, &key, &filter);
        return Ok(());
    }
    let fields = fields(&filter);
    if call.count() == 2 {
        call.reply_map(fields.len());
        fields.iter().for_each(|field| reply_field(call, field));
        return Ok(());
    }
    let asked = call.arg(2);
    let field = fields.iter().find(|field| asked.eq_ignore_ascii_case(field.word.as_bytes()));
    let field = field.ok_or(text::BF_INFO)?;
    // One field is a map of one pair, but in the older protocol the value alone.
    if call.is_resp3() {
        call.reply_map(1);
        reply_field(call, field);
    } else {
        call.reply_array(1);
        reply_value(call, field.value);
    }
    Ok(())
}

fn reply_field(call: &Call<'_>, field: &Field) {
    call.reply_simple(field.name);
    reply_value(call, field.value);
}

fn reply_value(call: &Call<'_>, value: Option<u64>) {
    match value {
        Some(value) => call.reply_integer(value as i64),
        None => call.reply_null(),
    }
}

/// Counts the bits, which takes as long as reading the filter, and replies: at once, or when those of a large filter are counted.
fn full(call: &Call<'_>, key: &Key<'_>, filter: &Bloom<'_>) {
    if filter.bytes() > SMALL_BYTES
        && let Some(waiting) = Waiting::begin(call)
    {
        return Count::start(call, key, waiting);
    }
    let fill = FillProgress::at_once(|progress, most| filter.fill_step(progress, most));
    Full::of(filter, fill).reply(call);
}

/// The reply of BF.INFO … FULL: all fields and three that RedisBloom lacks.
pub(super) struct Full {
    fields: [Field; 5],
    layout: &'static str,
    fill: Fill,
}

impl Full {
    /// The report about a filter whose bits were counted.
    pub(super) fn of(filter: &Bloom<'_>, fill: Fill) -> Self {
        let layout = match filter {
            ByLayout::RedisBloom(_) => "redisbloom",
            ByLayout::Native(filter) => filter.layout(),
        };
        Self { fields: fields(filter), layout, fill }
    }

    pub(super) fn reply(&self, call: &Call<'_>) {
        call.reply_map(self.fields.len() + 3);
        self.fields.iter().for_each(|field| reply_field(call, field));
        call.reply_simple(c"Layout");
        call.reply_word(self.layout);
        call.reply_simple(c"Fill");
        call.reply_double(self.fill.share());
        call.reply_simple(c"Estimated error rate");
        call.reply_double(self.fill.rate);
    }
}

impl Bloom<'_> {
    /// Counts the next words, `most_words` at most. With the last step, what was counted.
    pub(super) fn fill_step(&self, progress: &mut FillProgress, most_words: usize) -> Option<Fill> {
        match self {
            ByLayout::RedisBloom(chain) => chain.fill_step(progress, most_words),
            ByLayout::Native(filter) => filter.fill_step(progress, most_words),
        }
    }
}

/// `BF.DEBUG key`
pub(crate) fn bloom_debug(call: &Call<'_>) {
    settle(call, try_bloom_debug(call));
}

fn try_bloom_debug(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let key = call.open(1, Access::Read);
    let lines = match expect_filter(bloom(&key)?)? {
        ByLayout::RedisBloom(chain) => debug::chain_lines(chain),
        ByLayout::Native(filter) => filter.debug_lines(),
    };
    call.reply_array(lines.len());
    lines.iter().for_each(|line| call.reply_bytes(line.as_bytes()));
    Ok(())
}

/// `CF.INFO key`
pub(crate) fn cuckoo_info(call: &Call<'_>) {
    settle(call, try_cuckoo_info(call));
}

fn try_cuckoo_info(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let key = call.open(1, Access::Read);
    let filter = expect_filter(cuckoo(&key)?)?;
    let fields = cuckoo_fields(&filter);
    call.reply_map(fields.len());
    for (name, value) in fields {
        call.reply_simple(name);
        call.reply_integer(value as i64);
    }
    Ok(())
}

fn cuckoo_fields(filter: &Cuckoo<'_>) -> Vec<(&'static CStr, u64)> {
    let (size, buckets, filters, len, removed, bucket_size, expansion) = match filter {
        ByLayout::RedisBloom(filter) => {
            let shape = filter.shape();
            let (size, filters) = (filter.size_in_bytes(), filter.sub_filters() as u64);
            let (len, removed) = (filter.len(), filter.removed());
            let (bucket_size, expansion) =
                (u64::from(shape.bucket_size()), u64::from(shape.expansion()));
            (size, shape.buckets(), filters, len, removed, bucket_size, expansion)
        }
        ByLayout::Native(filter) => {
            let (size, filters) = (filter.array_bytes(), filter.parts() as u64);
            let (len, removed) = (filter.len(), filter.removed());
            let expansion = u64::from(filter.is_growing());
            (size, filter.params().buckets(), filters, len, removed, 4, expansion)
        }
    };
    // Clients ask for RedisBloom's eight fields by name. The native search for room has its own end, so it says 0.
    let (max_iterations, fingerprint_bits) = match filter {
        ByLayout::RedisBloom(filter) => (u64::from(filter.shape().max_iterations()), None),
        ByLayout::Native(filter) => (0, Some(u64::from(filter.params().fingerprint_bits()))),
    };
    let mut fields = vec![
        (c"Size", size),
        (c"Number of buckets", buckets),
        (c"Number of filters", filters),
        (c"Number of items inserted", len),
        (c"Number of items deleted", removed),
        (c"Bucket size", bucket_size),
        (c"Expansion rate", expansion),
        (c"Max iterations", max_iterations),
    ];
    fields.extend(fingerprint_bits.map(|bits| (c"Fingerprint bits", bits)));
    fields
}

/// `CF.DEBUG key`
pub(crate) fn cuckoo_debug(call: &Call<'_>) {
    settle(call, try_cuckoo_debug(call));
}

fn try_cuckoo_debug(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let key = call.open(1, Access::Read);
    let line = match expect_filter(cuckoo(&key)?)? {
        ByLayout::RedisBloom(filter) => debug::cuckoo_line(filter),
        ByLayout::Native(filter) => filter.debug_line(),
    };
    call.reply_bytes(line.as_bytes());
    Ok(())
}
