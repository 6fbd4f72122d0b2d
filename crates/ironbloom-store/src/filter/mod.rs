//! Filters that many threads query and change through `&self`, with lock-free queries.
//!
//! ```text
//!  Blocked          the library's atomic filter: bits are only ever set
//!  Cuckoo, DLeft    shards.rs: many small filters, never changed, only replaced
//!  Scalable         stages.rs: a list of atomic filters, of which the last is filled
//!  Windowed         the same list, which loses its oldest
//! ```

mod shards;
mod stages;

use std::io::{self, Write};
use std::sync::Arc;

use ironbloom::{
    AtomicBlockedBloom, BlockedBloom, BlockedBloomParams, Cuckoo, DLeft, ParamError, Persist,
};

pub(crate) use self::shards::{MOST_PARTS, Shards};
pub(crate) use self::stages::Stages;
use crate::kind::Kind;
use crate::options::Plan;

/// The filter of a guard.
pub(crate) enum SharedFilter {
    /// Empty so far: every key may be there.
    Open,
    Blocked(AtomicBlockedBloom),
    Cuckoo(Shards<Cuckoo>),
    DLeft(Shards<DLeft>),
    Stages(Stages),
}

/// A filter as read from a checkpoint.
pub(crate) struct Image<'a> {
    /// Each the bytes of a `.ibf` file.
    pub(crate) parts: Vec<&'a [u8]>,
    /// One more number, whose meaning depends on the kind.
    pub(crate) note: u64,
}

/// Takes the parts of a filter for a checkpoint one by one.
pub(crate) struct ImageWriter<W> {
    out: W,
    lengths: Vec<u64>,
    written: u64,
}

impl<W: Write> ImageWriter<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, lengths: Vec::new(), written: 0 }
    }

    fn filter(&mut self, filter: &impl Persist) -> io::Result<()> {
        filter.write_to(&mut *self)?;
        self.end_part();
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)?;
        self.end_part();
        Ok(())
    }

    fn end_part(&mut self) {
        self.lengths.push(std::mem::take(&mut self.written));
    }

    /// The bytes of each part.
    pub(crate) fn finish(mut self) -> io::Result<Vec<u64>> {
        self.out.flush()?;
        Ok(self.lengths)
    }
}

impl<W: Write> Write for ImageWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl SharedFilter {
    /// An empty one for at least `capacity` keys.
    pub(crate) fn new(plan: &Plan, capacity: u64) -> Result<Self, ParamError> {
        let capacity = capacity.max(plan.capacity);
        Ok(match plan.kind {
            Kind::Blocked => {
                let params = BlockedBloomParams::for_rate(capacity, plan.rate)?;
                Self::Blocked(AtomicBlockedBloom::new(params, plan.hash_fn)?)
            }
            Kind::Cuckoo => Self::Cuckoo(Shards::new(capacity, plan.rate, plan.hash_fn)?),
            Kind::DLeft => Self::DLeft(Shards::new(capacity, plan.rate, plan.hash_fn)?),
            Kind::Scalable => Self::Stages(Stages::growing(capacity, plan.rate, plan.hash_fn)?),
            // For a window the capacity is a promise, not an estimate: what the store holds does not matter.
            Kind::Windowed => Self::Stages(Stages::window(plan.capacity, plan.rate, plan.hash_fn)?),
        })
    }

    /// Might the key with this hash be stored?
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        match self {
            Self::Open => true,
            Self::Blocked(filter) => filter.contains_hash(hash),
            Self::Cuckoo(shards) => shards.contains(hash),
            Self::DLeft(shards) => shards.contains(hash),
            Self::Stages(stages) => stages.contains(hash),
        }
    }

    /// `found[i]` tells whether the key with `hashes[i]` might be stored.
    pub(crate) fn contains_many(&self, hashes: &[u64], found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "hashes and answers of a batch");
        match self {
            Self::Blocked(filter) => filter.contains_hashes(hashes, found),
            _ => {
                for (found, &hash) in found.iter_mut().zip(hashes) {
                    *found = self.contains(hash);
                }
            }
        }
    }

    /// Inserts a key. False if it looked present already.
    pub(crate) fn insert(&self, hash: u64) -> bool {
        match self {
            Self::Open => true,
            Self::Blocked(filter) => filter.insert_hash(hash),
            Self::Cuckoo(shards) => shards.insert(hash),
            Self::DLeft(shards) => shards.insert(hash),
            Self::Stages(stages) => stages.insert(hash),
        }
    }

    /// The put of a key that was inserted has ended; `looked_new` is what its insertion said. A window counts from here.
    pub(crate) fn acknowledge(&self, hash: u64, looked_new: bool) {
        if let Self::Stages(stages) = self {
            stages.acknowledge(hash, looked_new);
        }
    }

    /// Inserts many keys, in any order.
    pub(crate) fn insert_many(&self, hashes: &mut [u64]) {
        match self {
            Self::Open => {}
            Self::Blocked(filter) => filter.insert_hashes(hashes),
            Self::Cuckoo(shards) => shards.insert_many(hashes),
            Self::DLeft(shards) => shards.insert_many(hashes),
            Self::Stages(stages) => {
                for &hash in &*hashes {
                    stages.insert(hash);
                }
            }
        }
    }

    /// Removes one copy of a key, if the kind supports it. The key must have been inserted.
    pub(crate) fn remove(&self, hash: u64) {
        match self {
            Self::Cuckoo(shards) => shards.remove(hash),
            Self::DLeft(shards) => shards.remove(hash),
            Self::Open | Self::Blocked(_) | Self::Stages(_) => {}
        }
    }

    /// Number of keys counted.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Open => 0,
            Self::Blocked(filter) => filter.len(),
            Self::Cuckoo(shards) => shards.len(),
            Self::DLeft(shards) => shards.len(),
            Self::Stages(stages) => stages.len(),
        }
    }

    /// The capacity: the number of keys planned for.
    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Self::Open => 0,
            Self::Blocked(filter) => filter.params().capacity(),
            Self::Cuckoo(shards) => shards.capacity(),
            Self::DLeft(shards) => shards.capacity(),
            Self::Stages(stages) => stages.capacity(),
        }
    }

    /// Whether the capacity is reached or exceeded, so that the requested rate will not be met for long. Checked at
    /// every write, so it uses the counts: counting the bits of a large filter takes milliseconds.
    pub(crate) fn is_over_capacity(&self) -> bool {
        match self {
            Self::Open => false,
            Self::Blocked(filter) => filter.is_full(),
            Self::Cuckoo(shards) => shards.is_over_capacity(),
            Self::DLeft(shards) => shards.is_over_capacity(),
            Self::Stages(stages) => stages.is_over_capacity(),
        }
    }

    pub(crate) fn size_in_bytes(&self) -> u64 {
        match self {
            Self::Open => 0,
            Self::Blocked(filter) => filter.size_in_bytes() as u64,
            Self::Cuckoo(shards) => shards.size_in_bytes(),
            Self::DLeft(shards) => shards.size_in_bytes(),
            Self::Stages(stages) => stages.size_in_bytes(),
        }
    }

    /// Whether it still lacks the keys that were stored before it was created.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Open => true,
            Self::Stages(stages) => stages.is_blind(),
            _ => false,
        }
    }

    /// A filter created while the store held keys that it does not know and never will: a window.
    pub(crate) fn blind(self) -> Self {
        if let Self::Stages(stages) = &self {
            stages.go_blind();
        }
        self
    }

    /// A snapshot of the filter, taken while nobody changes it; it does not change, except for keys inserted later in
    /// kinds where an extra key is harmless. The time does not grow with the number of keys, except for a stage of a
    /// window.
    pub(crate) fn frozen(this: &Arc<Self>) -> Arc<Self> {
        match &**this {
            Self::Open | Self::Blocked(_) => this.clone(),
            Self::Cuckoo(shards) => Arc::new(Self::Cuckoo(shards.frozen())),
            Self::DLeft(shards) => Arc::new(Self::DLeft(shards.frozen())),
            Self::Stages(stages) => stages
                .frozen()
                .map_or_else(|| this.clone(), |stages| Arc::new(Self::Stages(stages))),
        }
    }

    /// Writes the parts of a copy for a checkpoint, and returns the number that belongs to them. Concurrent inserts may
    /// or may not be in it.
    pub(crate) fn write_image<W: Write>(&self, out: &mut ImageWriter<W>) -> io::Result<u64> {
        match self {
            Self::Open => Ok(0),
            Self::Blocked(filter) => out.filter(&filter.snapshot()).map(|()| 0),
            Self::Cuckoo(shards) => shards.write_image(out),
            Self::DLeft(shards) => shards.write_image(out),
            Self::Stages(stages) => stages.write_image(out),
        }
    }

    /// Whether one `.ibf` file can hold it. Cuckoo and d-left filters are thousands of small ones here, and windows are
    /// not the library's.
    pub(crate) fn can_be_published(kind: Kind) -> bool {
        kind == Kind::Blocked
    }

    /// Writes a copy that others can read: a `.ibf` file. Concurrent inserts may or may not be in it.
    pub(crate) fn write_published(&self, out: impl Write) -> io::Result<()> {
        match self {
            Self::Blocked(filter) => filter.snapshot().write_to(out),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The filter of an image. Every checksum is verified.
    pub(crate) fn from_image(
        plan: &Plan,
        capacity: u64,
        image: &Image<'_>,
    ) -> Result<Self, ImageError> {
        let filter = match plan.kind {
            Kind::Blocked => match &image.parts[..] {
                [bytes] => {
                    let plain =
                        BlockedBloom::from_bytes(bytes).map_err(|error| error.to_string())?;
                    check_hash(plan, plain.hash_fn())?;
                    Self::Blocked(plain.into())
                }
                parts => return Err(format!("{} parts instead of one", parts.len()).into()),
            },
            Kind::Cuckoo => Self::Cuckoo(Shards::from_image(plan, capacity, image)?),
            Kind::DLeft => Self::DLeft(Shards::from_image(plan, capacity, image)?),
            Kind::Scalable | Kind::Windowed => {
                let empty = Self::new(plan, capacity).map_err(|error| error.to_string())?;
                let Self::Stages(stages) = empty else { unreachable!("of these kinds") };
                Self::Stages(stages.with_image(plan, image)?)
            }
        };
        Ok(filter)
    }
}

/// Why an image is not the requested filter.
#[derive(Debug)]
pub(crate) enum ImageError {
    Damaged(String),
    /// Its keys were hashed differently.
    OtherHash,
}

impl From<String> for ImageError {
    fn from(why: String) -> Self {
        Self::Damaged(why)
    }
}

fn check_hash(plan: &Plan, found: ironbloom::HashFn) -> Result<(), ImageError> {
    if found == plan.hash_fn { Ok(()) } else { Err(ImageError::OtherHash) }
}

/// The part of an image that is not a filter: words, sealed by a checksum.
fn sealed(mut words: Vec<u64>) -> Vec<u8> {
    let bytes =
        |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    words.push(xxhash_rust::xxh3::xxh3_64(&bytes(&words)));
    bytes(&words)
}

/// The words of such a part. `None` if it is damaged.
fn unsealed(bytes: &[u8]) -> Option<Vec<u64>> {
    let (body, seal) = bytes.split_at_checked(bytes.len().checked_sub(size_of::<u64>())?)?;
    let words = body.chunks_exact(size_of::<u64>());
    let whole =
        words.remainder().is_empty() && xxhash_rust::xxh3::xxh3_64(body).to_le_bytes() == seal;
    whole.then(|| words.map(|word| u64::from_le_bytes(word.try_into().expect("eight"))).collect())
}
