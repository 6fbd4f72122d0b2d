//! RedisBloom's other types as values of the server. What they are and how they are saved is in the library; here are their
//! names, and how an append-only file recreates them.

use std::borrow::Cow;
use std::ffi::CStr;

use ironbloom::sketches::Sketch;
pub(crate) use ironbloom::sketches::{CountMin, TDigest, TopK};

use crate::engine::value::{DataType, Value};
use crate::error::{DecodeError, LoadError};
use crate::fields::{FieldReader, FieldWriter};
use crate::payload::payload;

/// The version of all encodings.
const VERSION: u32 = 0;

/// A sketch as RedisBloom has it.
pub(crate) trait Kept: Sketch + Clone + 'static {
    /// The type's name in files, nine letters.
    const TYPE_NAME: &'static CStr;

    /// The registered type.
    fn registered() -> &'static DataType;
    /// Size in bytes, as RedisBloom counts it.
    fn bytes(&self) -> u64;
    /// Arrays that defragmentation may move.
    fn movable(&mut self) -> Vec<&mut Vec<u8>>;
    /// Number of allocations.
    fn allocations(&self) -> usize;
}

impl Kept for CountMin {
    const TYPE_NAME: &'static CStr = c"CMSk-TYPE";

    fn registered() -> &'static DataType {
        static TYPE: DataType = DataType::new();
        &TYPE
    }

    fn bytes(&self) -> u64 {
        self.size_in_bytes()
    }

    fn movable(&mut self) -> Vec<&mut Vec<u8>> {
        vec![self.array_to_move()]
    }

    fn allocations(&self) -> usize {
        1
    }
}

impl Kept for TopK {
    const TYPE_NAME: &'static CStr = c"TopK-TYPE";

    fn registered() -> &'static DataType {
        static TYPE: DataType = DataType::new();
        &TYPE
    }

    /// With its items, which RedisBloom does not count.
    fn bytes(&self) -> u64 {
        self.size_in_bytes() + self.key_bytes()
    }

    fn movable(&mut self) -> Vec<&mut Vec<u8>> {
        vec![self.array_to_move()]
    }

    /// The keys, each by itself.
    fn allocations(&self) -> usize {
        self.len()
    }
}

impl Kept for TDigest {
    const TYPE_NAME: &'static CStr = c"TDIS-TYPE";

    fn registered() -> &'static DataType {
        static TYPE: DataType = DataType::new();
        &TYPE
    }

    fn bytes(&self) -> u64 {
        self.size_in_bytes()
    }

    /// None: its nodes are not bytes, and soon at another place anyway.
    fn movable(&mut self) -> Vec<&mut Vec<u8>> {
        Vec::new()
    }

    fn allocations(&self) -> usize {
        1
    }
}

impl<T: Kept> Value for T {
    const NAME: &'static CStr = T::TYPE_NAME;
    const VERSION: u32 = VERSION;
    /// With a time to live of 0, which is none: the server writes that of the key after it.
    const LOAD_COMMAND: &'static CStr = c"RESTORE";
    const HEADER_NUMBER: i64 = 0;
    const NOUN: &'static str = "sketch";

    fn data_type() -> &'static DataType {
        T::registered()
    }

    fn load(from: &mut impl FieldReader, version: u32) -> Result<Self, LoadError> {
        if version > VERSION {
            return Err(DecodeError::Unsupported { what: "files of a newer version" }.into());
        }
        Ok(T::decode(from)?)
    }

    fn save(&self, to: &mut impl FieldWriter) {
        self.encode(to);
    }

    /// The whole sketch, as RESTORE takes it.
    fn header(&self) -> Vec<u8> {
        payload(T::TYPE_NAME.to_bytes(), VERSION, |fields| self.encode(fields))
    }

    fn chunks(&self) -> impl Iterator<Item = (i64, Cow<'_, [u8]>)> {
        std::iter::empty()
    }

    fn size_in_bytes(&self) -> u64 {
        self.bytes()
    }

    fn arrays(&self) -> usize {
        self.allocations()
    }

    fn arrays_mut(&mut self) -> Vec<&mut Vec<u8>> {
        self.movable()
    }
}
