//! Where the values of a row are, for columns whose place follows from their lengths: read without unpacking the row.
//!
//! Unpacking takes most of the time of a row, for the server, too. The columns before the first one of varying length need
//! none of it.

use pgrx_pg_sys as pg_sys;

/// A column of fixed length.
#[derive(Clone, Copy)]
struct Column {
    len: usize,
    align: usize,
    by_value: bool,
    /// In a row without nulls, from where its values begin.
    at: usize,
}

/// The columns of a table up to the first one of varying length.
pub(crate) struct Layout(Vec<Column>);

/// What a row has in a column.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    Value(pg_sys::Datum),
    Null,
    /// The row is older than the column.
    Unknown,
}

impl Layout {
    /// # Safety
    ///
    /// The table is open.
    pub(crate) unsafe fn new(heap: pg_sys::Relation) -> Self {
        let mut columns = Vec::new();
        let mut end = 0usize;
        // SAFETY: an open relation has a descriptor with as many attributes as it says.
        unsafe {
            let descriptor = (*heap).rd_att;
            for i in 0..(*descriptor).natts as usize {
                let (len, by_value, align) = attribute(descriptor, i);
                let Ok(len @ 1..) = usize::try_from(len) else { break };
                let at = end.next_multiple_of(align);
                columns.push(Column { len, align, by_value, at });
                end = at + len;
            }
        }
        Self(columns)
    }

    /// Whether this column of the table, counted from 1, is one of these.
    pub(crate) fn has(&self, number: i16) -> bool {
        number > 0 && number as usize <= self.0.len()
    }

    /// Where a row without nulls has a column, counted from 1, from where its values begin, and its length.
    pub(crate) fn place(&self, number: i16) -> Option<(usize, usize)> {
        let column = self.0.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        column.by_value.then_some((column.at, column.len))
    }

    /// The value of a column, counted from 1. A value that is no number is a pointer into the row.
    ///
    /// # Safety
    ///
    /// The row is one of the table, and this is one of its columns, which [`Layout::has`]. Nothing here panics.
    #[inline]
    pub(crate) unsafe fn value(&self, row: &pg_sys::HeapTupleData, number: i16) -> Found {
        // SAFETY: the caller's promise; where the value is was compared with the length of the row.
        unsafe {
            let header = row.t_data;
            let place = number as usize - 1;
            let column = &*self.0.as_ptr().add(place);
            let known = u32::from((*header).t_infomask2) & pg_sys::HEAP_NATTS_MASK;
            if place >= known as usize {
                return Found::Unknown;
            }
            let mut at = column.at;
            if u32::from((*header).t_infomask) & pg_sys::HEAP_HASNULL != 0 {
                let bits = header.cast::<u8>().add(NULL_BITS);
                let is_null = |i: usize| *bits.add(i / 8) & 1 << (i % 8) == 0;
                if is_null(place) {
                    return Found::Null;
                }
                at = 0;
                for i in 0..place {
                    let before = &*self.0.as_ptr().add(i);
                    if !is_null(i) {
                        at = aligned(at, before.align) + before.len;
                    }
                }
                at = aligned(at, column.align);
            }
            let at = usize::from((*header).t_hoff) + at;
            if at + column.len > row.t_len as usize {
                return Found::Unknown;
            }
            let from = header.cast::<u8>().add(at);
            Found::Value(match (column.by_value, column.len) {
                (true, 1) => pg_sys::Datum::from(*from.cast::<i8>()),
                (true, 2) => pg_sys::Datum::from(from.cast::<i16>().read_unaligned()),
                (true, 4) => pg_sys::Datum::from(from.cast::<i32>().read_unaligned()),
                (true, 8) => pg_sys::Datum::from(from.cast::<i64>().read_unaligned()),
                (true, _) => return Found::Unknown,
                (false, _) => pg_sys::Datum::from(from),
            })
        }
    }
}

/// Where the bits of nulls are in a row.
const NULL_BITS: usize = 23;

/// As `next_multiple_of`, of powers of two.
#[inline]
fn aligned(at: usize, to: usize) -> usize {
    (at + to - 1) & !(to - 1)
}

/// Length, whether a datum is the value itself, and alignment of an attribute.
///
/// # Safety
///
/// The descriptor has it.
#[cfg(not(feature = "pg18"))]
unsafe fn attribute(descriptor: pg_sys::TupleDesc, i: usize) -> (i16, bool, usize) {
    // SAFETY: the caller's promise.
    let attribute = unsafe { &*(*descriptor).attrs.as_ptr().add(i) };
    let align = match attribute.attalign as u8 {
        b'c' => 1,
        b's' => 2,
        b'i' => 4,
        _ => 8,
    };
    (attribute.attlen, attribute.attbyval, align)
}

#[cfg(feature = "pg18")]
unsafe fn attribute(descriptor: pg_sys::TupleDesc, i: usize) -> (i16, bool, usize) {
    // SAFETY: the caller's promise.
    let attribute = unsafe { &*(*descriptor).compact_attrs.as_ptr().add(i) };
    (attribute.attlen, attribute.attbyval, usize::from(attribute.attalignby).max(1))
}
