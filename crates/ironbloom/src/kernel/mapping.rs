//! Memory straight from the system: files, and large arrays. Without the feature `mmap` neither exists, and large
//! arrays come from the allocator.

#[cfg(not(feature = "mmap"))]
pub(crate) use absent::{Mapping, Pages};
#[cfg(feature = "mmap")]
pub(crate) use present::{Mapping, Pages};

#[cfg(feature = "mmap")]
mod present {
    use std::fs::File;
    use std::io;
    use std::sync::Arc;

    use memmap2::{Mmap, MmapMut, MmapOptions};

    /// A memory-mapped file, shared by the filters that use it.
    #[derive(Clone)]
    pub(crate) struct Mapping(Arc<Mmap>);

    impl Mapping {
        /// # Safety
        ///
        /// The file must not be changed or truncated while a filter uses it ([`Persist::map`](crate::Persist::map)).
        pub(crate) unsafe fn open(file: &File) -> io::Result<Self> {
            // SAFETY: the map is read-only and lives as long as the Arc; the rest is guaranteed by the caller.
            let map = unsafe { Mmap::map(file)? };
            Ok(Self(Arc::new(map)))
        }

        pub(crate) fn bytes(&self) -> &[u8] {
            &self.0
        }
    }

    /// Our own pages.
    pub(crate) struct Pages(MmapMut);

    impl Pages {
        /// Allocates zeros, on huge pages if the system has them. `None` if allocation fails.
        pub(crate) fn zeroed(bytes: usize) -> Option<Self> {
            let pages = MmapMut::map_anon(bytes).ok()?;
            // Only advice: a refusal (an old kernel, a container) costs nothing but speed.
            #[cfg(target_os = "linux")]
            let _ = pages.advise(memmap2::Advice::HugePage);
            Some(Self(pages))
        }

        /// Maps a file copy-on-write: the system copies a page when it is first written; the file is not changed.
        ///
        /// # Safety
        ///
        /// The file must not be changed or truncated while these pages live.
        pub(crate) unsafe fn private(file: &File) -> io::Result<Self> {
            // SAFETY: guaranteed by the caller.
            Ok(Self(unsafe { MmapOptions::new().map_copy(file)? }))
        }

        pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }
    }
}

#[cfg(not(feature = "mmap"))]
mod absent {
    /// Never constructed.
    #[derive(Clone)]
    pub(crate) struct Mapping;

    /// Never constructed.
    pub(crate) struct Pages;

    impl Pages {
        pub(crate) fn zeroed(_bytes: usize) -> Option<Self> {
            None
        }

        pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
            &mut []
        }
    }
}
