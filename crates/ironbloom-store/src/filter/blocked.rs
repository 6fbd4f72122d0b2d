//! Blocked Bloom filters for many threads: the library's atomic filter, whose bits are only ever set.

use std::io::{self, Write};
use std::sync::Arc;

use ironbloom::{AtomicBlockedBloom, BlockedBloom, BlockedBloomParams, Persist};

use super::{Image, ImageError, ImageWriter, Maker, SharedFilter, check_hash};

pub(crate) const BLOCKED: Maker = Maker {
    empty: |spec, capacity| {
        let params = BlockedBloomParams::for_rate(capacity, spec.rate)?;
        Ok(Arc::new(AtomicBlockedBloom::new(params, spec.hash_fn)?))
    },
    from_image: |spec, _, image| {
        let filter = BlockedBloom::from_bytes(only_part(image)?)
            .map_err(|error| ImageError::Part { number: 0, error })?;
        check_hash(spec, filter.hash_fn())?;
        Ok(Arc::new(AtomicBlockedBloom::from(filter)))
    },
    can_publish: true,
};

fn only_part<'a>(image: &Image<'a>) -> Result<&'a [u8], ImageError> {
    match image.parts[..] {
        [bytes] => Ok(bytes),
        _ => Err(ImageError::PartCount(image.parts.len())),
    }
}

impl SharedFilter for AtomicBlockedBloom {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }

    fn contains_many(&self, hashes: &[u64], found: &mut [bool]) {
        self.contains_hashes(hashes, found);
    }

    fn insert(&self, hash: u64) -> bool {
        self.insert_hash(hash)
    }

    fn insert_many(&self, hashes: &mut [u64]) {
        self.insert_hashes(hashes);
    }

    fn len(&self) -> u64 {
        self.len()
    }

    fn capacity(&self) -> u64 {
        self.params().capacity()
    }

    fn is_over_capacity(&self) -> bool {
        self.is_full()
    }

    fn size_in_bytes(&self) -> u64 {
        self.size_in_bytes() as u64
    }

    /// The filter itself: a key inserted later does no harm.
    fn frozen(self: Arc<Self>) -> Arc<dyn SharedFilter> {
        self
    }

    fn write_image(&self, out: &mut ImageWriter<'_>) -> io::Result<u64> {
        out.filter(&self.snapshot()).map(|()| 0)
    }

    fn write_published(&self, out: &mut dyn Write) -> io::Result<()> {
        self.snapshot().write_to(out)
    }
}
