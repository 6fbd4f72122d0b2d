//! From a datum to the hash that the index keeps.
//!
//! Operator classes name the hash function of a type, that of the server's own hash indexes: equal values have equal hashes,
//! across the types of a family, too. Integers are hashed here, as `ironbloom-blocks` does: calling a function for each of
//! them would take most of the time of a build.

use ironbloom::hash::mix64;
use ironbloom_blocks::ValueKind;
use ironbloom_blocks::encode::{fingerprint, hash_small};
use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;

use crate::folding::is_nondeterministic;
use crate::functions::varlena;
use crate::shape;
use crate::storage::Index;

/// The support function of operator classes: a hash of 64 bits.
pub(crate) const HASH_PROC: u16 = 1;

/// How the values of a type are hashed.
#[derive(Clone, Copy)]
pub(crate) struct Hasher {
    how: How,
    collation: pg_sys::Oid,
}

#[derive(Clone, Copy)]
enum How {
    Int2,
    Int4,
    Int8,
    /// All alike: nothing looks at them.
    Nothing,
    Call(*mut pg_sys::FmgrInfo),
    /// Makes a text of the value first, and hashes that: see `folding.rs`.
    AsText(*mut pg_sys::FmgrInfo, Texts),
}

/// Types that are hashed as texts.
#[derive(Clone, Copy)]
enum Texts {
    Padded,
    Name,
}

/// The width of integers that are hashed here.
#[derive(Clone, Copy)]
pub(crate) enum Integer {
    Two,
    Four,
    Eight,
}

impl Integer {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// Without the guard of every single call: see [`Hasher::hash`].
mod raw {
    use super::pg_sys;
    unsafe extern "C-unwind" {
        pub(super) fn FunctionCall2Coll(
            function: *mut pg_sys::FmgrInfo,
            collation: pg_sys::Oid,
            first: pg_sys::Datum,
            second: pg_sys::Datum,
        ) -> pg_sys::Datum;
        pub(super) fn pg_detoast_datum_packed(value: *mut pg_sys::varlena) -> *mut pg_sys::varlena;
        pub(super) fn cstring_to_text_with_len(
            text: *const std::ffi::c_char,
            len: std::ffi::c_int,
        ) -> *mut pg_sys::text;
        pub(super) fn pfree(memory: *mut std::ffi::c_void);
    }
}

impl Hasher {
    fn new(function: *mut pg_sys::FmgrInfo, collation: pg_sys::Oid) -> Self {
        // SAFETY: the caller has it from the server.
        let how = match u32::from(unsafe { (*function).fn_oid }) {
            pg_sys::F_HASHINT2EXTENDED => How::Int2,
            pg_sys::F_HASHINT4EXTENDED => How::Int4,
            pg_sys::F_HASHINT8EXTENDED => How::Int8,
            pg_sys::F_HASHBPCHAREXTENDED if is_nondeterministic(collation) => {
                How::AsText(hash_of_text(), Texts::Padded)
            }
            pg_sys::F_HASHNAMEEXTENDED if is_nondeterministic(collation) => {
                How::AsText(hash_of_text(), Texts::Name)
            }
            _ => How::Call(function),
        };
        Self { how, collation }
    }

    /// Whether it calls nothing but the server's own code, and only to hash.
    pub(crate) fn is_built_in(&self) -> bool {
        match self.how {
            How::Int2 | How::Int4 | How::Int8 => true,
            How::Nothing | How::AsText(..) => false,
            How::Call(function) => {
                // SAFETY: the server has described it.
                let number = unsafe { (*function).fn_oid };
                u32::from(number) < pg_sys::FirstNormalObjectId
            }
        }
    }

    /// If it is for integers that [`Hasher::hash_integer`] hashes.
    pub(crate) fn integer(&self) -> Option<Integer> {
        match self.how {
            How::Int2 => Some(Integer::Two),
            How::Int4 => Some(Integer::Four),
            How::Int8 => Some(Integer::Eight),
            How::Nothing | How::Call(_) | How::AsText(..) => None,
        }
    }

    /// The hash of an integer of any width.
    #[inline]
    pub(crate) fn hash_integer(number: i64) -> u32 {
        fingerprint(hash_small(number, ValueKind::Int))
    }

    /// Those of all columns, to note their values.
    pub(crate) fn of_columns(index: Index) -> Vec<Self> {
        (0..index.columns()).map(|column| Self::to_note(index, column)).collect()
    }

    /// To note values of a column. Where nothing is known about it any more, nothing is noted.
    pub(crate) fn to_note(index: Index, column: usize) -> Self {
        let hasher = Self::of_column(index, column);
        if hasher.may_hash_rows() && shape::has_changed(index, &index.meta(), column) {
            return Self { how: How::Nothing, ..hasher };
        }
        hasher
    }

    /// False if no value of its type can have a row inside: this takes no look into the catalogue.
    fn may_hash_rows(&self) -> bool {
        let How::Call(function) = self.how else { return false };
        // SAFETY: the server has described it.
        let number = u32::from(unsafe { (*function).fn_oid });
        #[cfg(not(feature = "pg13"))]
        if number == pg_sys::F_HASH_RECORD_EXTENDED || number == pg_sys::F_HASH_MULTIRANGE_EXTENDED
        {
            return true;
        }
        number == pg_sys::F_HASH_ARRAY_EXTENDED
            || number == pg_sys::F_HASH_RANGE_EXTENDED
            || number >= pg_sys::FirstNormalObjectId
    }

    pub(crate) fn of_column(index: Index, column: usize) -> Self {
        let relation = index.relation();
        // SAFETY: the index is open and has that column.
        unsafe {
            let function = pg_sys::index_getprocinfo(relation, column as i16 + 1, HASH_PROC);
            Self::new(function, *(*relation).rd_indcollation.add(column))
        }
    }

    /// For a value of another type of the same family.
    pub(crate) fn of_type(index: Index, column: usize, kind: pg_sys::Oid) -> Self {
        let relation = index.relation();
        // SAFETY: the index is open and has that column; the function's description lives as long as the current context.
        unsafe {
            if kind == pg_sys::InvalidOid || kind == *(*relation).rd_opcintype.add(column) {
                return Self::of_column(index, column);
            }
            let family = *(*relation).rd_opfamily.add(column);
            let function = pg_sys::get_opfamily_proc(family, kind, kind, HASH_PROC as i16);
            if function == pg_sys::InvalidOid {
                pg_sys::ereport!(
                    ERROR,
                    PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
                    format!("operator family {family} has no hash function for type {kind}")
                );
            }
            let info: *mut pg_sys::FmgrInfo = pg_sys::palloc0(size_of::<pg_sys::FmgrInfo>()).cast();
            pg_sys::fmgr_info(function, info);
            Self::new(info, *(*relation).rd_indcollation.add(column))
        }
    }

    /// The hash of a value that is not null.
    ///
    /// # Safety
    ///
    /// The datum is of the hasher's type. An error of a hash function jumps over the frames up to the next guard: there
    /// must be nothing to drop.
    #[inline]
    pub(crate) unsafe fn hash(&self, datum: pg_sys::Datum) -> u32 {
        match self.how {
            How::Int2 => Self::hash_integer((datum.value() as i16).into()),
            How::Int4 => Self::hash_integer((datum.value() as i32).into()),
            How::Int8 => Self::hash_integer(datum.value() as i64),
            How::Nothing => 1,
            // SAFETY: the caller's promise.
            How::Call(function) => unsafe { self.call(function, datum) },
            // SAFETY: the caller's promise; the text is ours.
            How::AsText(function, texts) => unsafe {
                let text = text_of(datum, texts);
                let hash = self.call(function, text);
                raw::pfree(text.cast_mut_ptr());
                hash
            },
        }
    }

    /// # Safety
    ///
    /// The datum is of the function's type, and errors jump.
    #[inline]
    unsafe fn call(&self, function: *mut pg_sys::FmgrInfo, datum: pg_sys::Datum) -> u32 {
        const SEED: pg_sys::Datum = pg_sys::Datum::null();
        // SAFETY: the caller's promise.
        let hash = unsafe { raw::FunctionCall2Coll(function, self.collation, datum, SEED) };
        fingerprint(mix64(hash.value() as u64))
    }

    /// The same, wherever it is called.
    ///
    /// # Safety
    ///
    /// The datum is of the hasher's type.
    pub(crate) unsafe fn hash_guarded(&self, datum: pg_sys::Datum) -> u32 {
        // SAFETY: the closure has nothing to drop.
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| self.hash(datum)) }
    }
}

/// The hash function of texts, described in the current context.
fn hash_of_text() -> *mut pg_sys::FmgrInfo {
    // SAFETY: memory of the server, for a function of the server.
    unsafe {
        let info: *mut pg_sys::FmgrInfo = pg_sys::palloc0(size_of::<pg_sys::FmgrInfo>()).cast();
        pg_sys::fmgr_info(pg_sys::F_HASHTEXTEXTENDED.into(), info);
        info
    }
}

/// A new text with what is compared of such a value.
///
/// # Safety
///
/// The datum is of that type. Nothing here is dropped or panics: errors jump.
unsafe fn text_of(datum: pg_sys::Datum, texts: Texts) -> pg_sys::Datum {
    // SAFETY: the caller's promise.
    unsafe {
        let (start, len) = match texts {
            Texts::Name => {
                let name: *const u8 = datum.cast_mut_ptr();
                let len = (0..pg_sys::NAMEDATALEN as usize).take_while(|&i| *name.add(i) != 0);
                (name, len.count())
            }
            Texts::Padded => {
                let value = raw::pg_detoast_datum_packed(datum.cast_mut_ptr());
                let (start, mut len) = varlena(value.cast());
                while len > 0 && *start.add(len - 1) == b' ' {
                    len -= 1;
                }
                (start, len)
            }
        };
        pg_sys::Datum::from(raw::cstring_to_text_with_len(start.cast(), len as i32))
    }
}
