//! A filter with the checksums of its image, once they were asked for.
//!
//! The header of a dump has a checksum of the whole image, and the image ends with checksums of its parts. To make them, all
//! of the filter is read: the longest step of a dump. So they are made together, in as many steps as the caller likes, and kept
//! until the filter changes; the end of the image, and the header of the next dump, then read nothing.

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::ops::{Deref, DerefMut};

use ironbloom::format::native::Table;
use xxhash_rust::xxh3::Xxh3;

use super::{Imaged, Reading};

/// See the module header. Mutable access to the filter drops the checksums, whether the filter changes or not.
pub struct Whole<T> {
    filter: T,
    sums: OnceCell<Sums>,
    /// What is known of them if it is not all.
    begun: RefCell<Option<Box<Begun>>>,
}

struct Sums {
    /// XXH3-64 of the image.
    image_hash: u64,
    /// The tables in the image.
    tables: Box<[Table]>,
}

#[derive(Default)]
struct Begun {
    reading: Reading,
    hash: Xxh3,
}

impl<T: Imaged> Whole<T> {
    /// XXH3-64 of the image, seed 0. Unless it is known, reads the rest of the filter.
    pub fn image_hash(&self) -> u64 {
        self.sums().image_hash
    }

    /// The tables of checksums in the image. Unless they are known, reads the rest of the filter.
    pub fn tables(&self) -> &[Table] {
        &self.sums().tables
    }

    fn sums(&self) -> &Sums {
        while !self.read_on(usize::MAX) {}
        self.sums.get().expect("all was read")
    }

    /// Whether the checksums are known.
    pub fn has_sums(&self) -> bool {
        self.sums.get().is_some()
    }

    /// Reads at most `most_chunks` chunks of 64 KiB for the checksums. True if they are known.
    pub fn read_on(&self, most_chunks: usize) -> bool {
        if self.has_sums() {
            return true;
        }
        let mut begun = self.begun.borrow_mut();
        let Begun { reading, hash } = &mut **begun.get_or_insert_default();
        if !self.filter.read_image(reading, most_chunks, &mut |part| hash.update(part)) {
            return false;
        }
        let tables = std::mem::take(&mut reading.tables).into();
        let sums = Sums { image_hash: hash.digest(), tables };
        *begun = None;
        self.sums.set(sums).is_ok()
    }

    /// How many times [`read_on`](Self::read_on) was called since the filter last changed, until the checksums are known.
    pub fn steps_read(&self) -> u64 {
        self.begun.borrow().as_ref().map_or(0, |begun| begun.reading.steps)
    }
}

impl<T> From<T> for Whole<T> {
    fn from(filter: T) -> Self {
        Self { filter, sums: OnceCell::new(), begun: RefCell::new(None) }
    }
}

impl<T> Deref for Whole<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.filter
    }
}

impl<T> DerefMut for Whole<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.sums.take();
        self.begun.take();
        &mut self.filter
    }
}

impl<T: Clone> Clone for Whole<T> {
    fn clone(&self) -> Self {
        Self::from(self.filter.clone())
    }
}

impl<T: PartialEq> PartialEq for Whole<T> {
    fn eq(&self, other: &Self) -> bool {
        self.filter == other.filter
    }
}

impl<T: fmt::Debug> fmt::Debug for Whole<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use ironbloom::HashFn;

    use super::*;
    use crate::limits::MemoryLimit;
    use crate::native::bloom::NativeBloom;
    use crate::native::cuckoo::NativeCuckoo;
    use crate::native::error::NativeError;
    use crate::native::images::{Images, Origin};
    use crate::native::wire;

    const NONE: MemoryLimit = MemoryLimit::NONE;

    /// Counts the bytes that are read to be hashed.
    struct Counted<T> {
        inner: T,
        hashed: Cell<u64>,
    }

    impl<T> Counted<T> {
        fn new(inner: T) -> Whole<Self> {
            Whole::from(Self { inner, hashed: Cell::new(0) })
        }
    }

    impl<T: Imaged> Imaged for Counted<T> {
        const NUMBERS: usize = T::NUMBERS;

        fn numbers(&self) -> Vec<u64> {
            self.inner.numbers()
        }

        fn image_bytes(&self) -> u64 {
            self.inner.image_bytes()
        }

        fn image_piece<'t>(
            &self,
            offset: u64,
            most: usize,
            tables: &dyn Fn() -> &'t [Table],
        ) -> Vec<u8> {
            self.inner.image_piece(offset, most, tables)
        }

        fn needs_table(&self, offset: u64, most: usize) -> bool {
            self.inner.needs_table(offset, most)
        }

        fn read_image(
            &self,
            reading: &mut Reading,
            most_chunks: usize,
            visit: &mut dyn FnMut(&[u8]),
        ) -> bool {
            self.inner.read_image(reading, most_chunks, &mut |part| {
                self.hashed.set(self.hashed.get() + part.len() as u64);
                visit(part);
            })
        }

        fn from_images(images: Images, numbers: &[u64]) -> Result<Self, NativeError> {
            Ok(Self { inner: T::from_images(images, numbers)?, hashed: Cell::new(0) })
        }

        fn array_bytes(&self) -> u64 {
            self.inner.array_bytes()
        }
    }

    fn chunks(filter: &Whole<impl Imaged>) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some((_, piece)) = wire::piece(filter, 1 + bytes.len() as i64) {
            bytes.extend(piece);
        }
        bytes
    }

    /// Header and chunks, of which only the header may hash anything.
    fn dump<T: Imaged>(filter: &Whole<Counted<T>>) -> (Vec<u8>, Vec<u8>) {
        let (header, before) = (wire::header(filter), filter.hashed.get());
        let bytes = chunks(filter);
        assert_eq!(filter.hashed.get(), before, "bytes hashed for chunks");
        (header, bytes)
    }

    fn check<T: Imaged + Clone>(filter: T, change: impl Fn(&mut T)) {
        let mut filter = Counted::new(filter);
        let mut hashed = 0;
        for round in 0..5 {
            hashed += filter.image_bytes();
            // In some rounds, the checksums are made in steps before.
            if round % 2 == 1 {
                while !filter.read_on(round) {}
            }
            let (header, bytes) = dump(&filter);
            let again = dump(&filter);
            assert_eq!(filter.hashed.get(), hashed, "round {round}: once for two dumps");
            // A copy about which nothing is known yet.
            let fresh = dump(&Counted::new(filter.inner.clone()));
            assert!(again == fresh && (header, bytes) == fresh, "round {round}");
            change(&mut filter.inner);
            // A change in the middle: what was read before it counts for nothing.
            if round == 3 && !filter.read_on(1) {
                hashed = filter.hashed.get();
                change(&mut filter.inner);
            }
            // Chunks that no header was asked for: their checksums are those of the filter as it is now.
            let mut images = Images::new(filter.image_bytes(), Origin::Announced);
            images.push(&chunks(&filter)).unwrap();
            assert!(T::from_images(images, &filter.numbers()).is_ok(), "round {round}");
            hashed += filter.image_bytes();
            change(&mut filter.inner);
        }
    }

    #[test]
    fn a_filter_is_hashed_once_until_it_changes() {
        let next = Cell::new(0u64);
        let hash = || {
            next.set(next.get() + 1);
            HashFn::default().hash(next.get().to_le_bytes())
        };
        let add = |filter: &mut NativeBloom| {
            filter.insert_each(&[hash()], &mut [false], || NONE).unwrap();
        };
        // Tables within one chunk of a dump, and across several.
        check(NativeBloom::growing(2, 0.05, 2, HashFn::default(), NONE).unwrap(), add);
        check(NativeBloom::blocked(2_000_000, 0.01, HashFn::default(), NONE).unwrap(), add);
        check(NativeBloom::window(50, 0.05, HashFn::default(), NONE).unwrap(), add);
        let mut parts = NativeCuckoo::new(40, 0.05, true, HashFn::default(), NONE).unwrap();
        (0..100).for_each(|_| parts.insert(hash(), || NONE).unwrap());
        assert!(parts.parts() > 1);
        check(parts.clone(), |filter| filter.insert(hash(), || NONE).unwrap());
        // Keys that move from the newest part to older ones.
        (1..60).for_each(|key| {
            parts.remove(HashFn::default().hash(u64::to_le_bytes(key)));
        });
        check(parts, |filter| filter.compact_part(filter.parts() - 1, 0..1));
    }
}
