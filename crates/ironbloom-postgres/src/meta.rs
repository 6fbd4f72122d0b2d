//! The first page: what the index consists of.
//!
//! ```text
//! heap pages   0 ……………………………… sealed ………… noted ………………… end of the heap
//!              named by segments     │ being     │ tail: no entries, every
//!              and pending lists     │ sealed    │ page is a candidate
//! ```
//!
//! Scans trust the segments only for pages below `sealed`. Inserts write entries for pages below `noted`, which is raised
//! first: so what an insert does not write, the sealing that follows sees on the page.

use bytemuck::{Pod, Zeroable};

/// The first page.
pub(crate) const META_BLOCK: u32 = 0;
const MAGIC: u32 = 0x4d42_4249;
/// Of the layout of all pages.
pub(crate) const VERSION: u32 = 1;
/// Of the rules by which values are hashed. Before 1, `char(n)` and `name` were hashed without regard to collations that are
/// nondeterministic; before 2, the shapes of columns were not noted.
pub(crate) const HASHES: u32 = 2;
/// From here on they respect collations.
pub(crate) const FOLDED_HASHES: u32 = 1;
const HASHES_WITH_SHAPES: u32 = 2;
/// More are never needed: sizes grow by a factor.
pub(crate) const MAX_SEGMENTS: usize = 160;
/// Buckets of a column are a multiple of this, so that partitions of hashes end where buckets do.
pub(crate) const BUCKET_STEP: u32 = 1024;

/// A list of rows that have come to sealed pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct PendingList {
    /// 0 if there is none.
    pub(crate) owner: u32,
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) pages: u32,
}

/// What a column's hashes become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ColumnMeta {
    /// 0 until the first rows are sealed.
    pub(crate) buckets: u32,
    pub(crate) selectivity: u32,
}

impl ColumnMeta {
    /// The bucket of a hash; that of null comes after all others.
    #[inline]
    pub(crate) fn bucket(self, hash: u32) -> u32 {
        if hash == NULL {
            self.buckets
        } else {
            ((u64::from(hash) * u64::from(self.buckets)) >> 32) as u32
        }
    }
}

/// The hash of null, and of nothing else.
pub(crate) const NULL: u32 = ironbloom_blocks::encode::NULL;

/// Some cells, as (bucket, heap page) of each column, in pages under a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Segment {
    pub(crate) owner: u32,
    /// The topmost page of its directory.
    pub(crate) root: u32,
    /// The heap pages that it can name.
    pub(crate) first: u32,
    pub(crate) span: u32,
    /// Pages of the index that it takes.
    pub(crate) pages: u32,
    pub(crate) zero: u32,
    /// Entries, over all columns.
    pub(crate) cells: u64,
}

/// Bytes that tell where sealing has come to.
pub(crate) const MARKS: usize = size_of::<Fixed>();

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Fixed {
    magic: u32,
    version: u32,
    columns: u32,
    segments: u32,
    next_owner: u32,
    sealed: u32,
    noted: u32,
    hashes: u32,
    pending: PendingList,
    flushing: PendingList,
}

/// The meta page, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) next_owner: u32,
    pub(crate) sealed: u32,
    pub(crate) noted: u32,
    /// By which rules values were hashed: see [`HASHES`].
    pub(crate) hashes: u32,
    /// Takes new rows.
    pub(crate) pending: PendingList,
    /// Is becoming a segment.
    pub(crate) flushing: PendingList,
    pub(crate) columns: Vec<ColumnMeta>,
    pub(crate) segments: Vec<Segment>,
    /// The row types within each column, when it was built: see `shape.rs`. None in indexes of earlier versions.
    pub(crate) shapes: Vec<u64>,
}

fn records<T: Pod>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// Where sealing has come to, for those who need no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    pub(crate) sealed: u32,
    pub(crate) noted: u32,
}

impl Meta {
    /// Of an index without rows, from the selectivity and the shape of each column.
    pub(crate) fn new(columns: impl Iterator<Item = (u32, u64)>) -> Self {
        let (columns, shapes) = columns
            .map(|(selectivity, shape)| (ColumnMeta { buckets: 0, selectivity }, shape))
            .unzip();
        Self {
            next_owner: 1,
            sealed: 0,
            noted: 0,
            hashes: HASHES,
            pending: PendingList::default(),
            flushing: PendingList::default(),
            columns,
            segments: Vec::new(),
            shapes,
        }
    }

    /// A number for a new owner of pages.
    pub(crate) fn take_owner(&mut self) -> u32 {
        let owner = self.next_owner;
        // After four billion changes numbers come again. What they owned then is long gone.
        self.next_owner = self.next_owner.checked_add(1).unwrap_or(1);
        owner
    }

    fn fixed(content: &[u8]) -> Result<Fixed, String> {
        let fixed: Fixed = content
            .get(..size_of::<Fixed>())
            .map(bytemuck::pod_read_unaligned)
            .ok_or("it is too short")?;
        if fixed.magic != MAGIC {
            return Err("it is not the first page of an ironbloom index".into());
        }
        if fixed.version != VERSION {
            return Err(format!(
                "it has version {}, and this is the extension for version {VERSION}",
                fixed.version
            ));
        }
        Ok(fixed)
    }

    /// Only where sealing has come to.
    pub(crate) fn marks(content: &[u8]) -> Result<(Marks, PendingList), String> {
        let fixed = Self::fixed(content)?;
        Ok((Marks { sealed: fixed.sealed, noted: fixed.noted }, fixed.pending))
    }

    pub(crate) fn read(content: &[u8]) -> Result<Self, String> {
        let fixed = Self::fixed(content)?;
        let columns_end = size_of::<Fixed>() + fixed.columns as usize * size_of::<ColumnMeta>();
        let segments_end = columns_end + fixed.segments as usize * size_of::<Segment>();
        let shapes = if fixed.hashes < HASHES_WITH_SHAPES { 0 } else { fixed.columns as usize };
        let end = segments_end + shapes * size_of::<u64>();
        if fixed.columns > 64 || fixed.segments as usize > MAX_SEGMENTS || content.len() != end {
            return Err("its lengths are invalid".into());
        }
        let columns: Vec<ColumnMeta> = records(&content[size_of::<Fixed>()..columns_end]);
        let segments: Vec<Segment> = records(&content[columns_end..segments_end]);
        if segments
            .iter()
            .any(|segment| segment.first.checked_add(segment.span).is_none() || segment.span == 0)
        {
            return Err("a segment is invalid".into());
        }
        Ok(Self {
            next_owner: fixed.next_owner,
            sealed: fixed.sealed,
            noted: fixed.noted,
            hashes: fixed.hashes,
            pending: fixed.pending,
            flushing: fixed.flushing,
            columns,
            segments,
            shapes: records(&content[segments_end..]),
        })
    }

    /// Returns how many bytes it takes.
    pub(crate) fn write(&self, content: &mut [u8]) -> usize {
        assert!(self.segments.len() <= MAX_SEGMENTS, "few enough segments");
        let fixed = Fixed {
            magic: MAGIC,
            version: VERSION,
            columns: self.columns.len() as u32,
            segments: self.segments.len() as u32,
            next_owner: self.next_owner,
            sealed: self.sealed,
            noted: self.noted,
            hashes: self.hashes,
            pending: self.pending,
            flushing: self.flushing,
        };
        let parts: [&[u8]; 4] = [
            bytemuck::bytes_of(&fixed),
            bytemuck::cast_slice(&self.columns),
            bytemuck::cast_slice(&self.segments),
            bytemuck::cast_slice(&self.shapes),
        ];
        let mut at = 0;
        for part in parts {
            content[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        at
    }

    /// All owners of pages that are in use.
    pub(crate) fn owners(&self) -> Vec<u32> {
        let lists =
            [self.pending.owner, self.flushing.owner].into_iter().filter(|&owner| owner != 0);
        self.segments.iter().map(|segment| segment.owner).chain(lists).collect()
    }

    /// Whether it is known how many buckets the columns have: since the first sealing.
    pub(crate) fn has_buckets(&self) -> bool {
        self.columns.iter().all(|column| column.buckets > 0)
    }

    /// Entries of all segments and columns.
    pub(crate) fn cells(&self) -> u64 {
        self.segments.iter().map(|segment| segment.cells).sum()
    }
}
