//! The filters as values of the server.

use std::borrow::Cow;
use std::ffi::CStr;

use crate::engine::value::{DataType, Value};
use crate::error::LoadError;
use crate::fields::{FieldReader, FieldWriter};
use crate::native::bloom::NativeBloom;
use crate::native::cuckoo::NativeCuckoo;
use crate::native::{Imaged, Native, file};
use crate::redisbloom::chain::Chain;
use crate::redisbloom::cuckoo::CuckooFilter;
use crate::redisbloom::dump;
use crate::redisbloom::rdb;

impl Value for Chain {
    const NAME: &'static CStr = c"MBbloom--";
    const VERSION: u32 = rdb::VERSION;
    const LOAD_COMMAND: &'static CStr = c"BF.LOADCHUNK";

    fn data_type() -> &'static DataType {
        static TYPE: DataType = DataType::new();
        &TYPE
    }

    fn load(from: &mut impl FieldReader, version: u32) -> Result<Self, LoadError> {
        Ok(rdb::load_chain(from, version)?)
    }

    fn save(&self, to: &mut impl FieldWriter) {
        rdb::save_chain(self, to);
    }

    fn header(&self) -> Vec<u8> {
        dump::chain_header(self)
    }

    fn chunks(&self) -> impl Iterator<Item = (i64, Cow<'_, [u8]>)> {
        dump::chain_chunks(self).map(|(next, piece)| (next, Cow::Borrowed(piece)))
    }

    fn arrays(&self) -> usize {
        self.links().len()
    }

    fn size_in_bytes(&self) -> u64 {
        Chain::size_in_bytes(self)
    }

    fn arrays_mut(&mut self) -> Vec<&mut Vec<u8>> {
        self.arrays_to_move()
    }
}

impl Value for CuckooFilter {
    const NAME: &'static CStr = c"MBbloomCF";
    const VERSION: u32 = rdb::VERSION;
    const LOAD_COMMAND: &'static CStr = c"CF.LOADCHUNK";

    fn data_type() -> &'static DataType {
        static TYPE: DataType = DataType::new();
        &TYPE
    }

    fn load(from: &mut impl FieldReader, version: u32) -> Result<Self, LoadError> {
        Ok(rdb::load_cuckoo(from, version)?)
    }

    fn save(&self, to: &mut impl FieldWriter) {
        rdb::save_cuckoo(self, to);
    }

    fn header(&self) -> Vec<u8> {
        dump::cuckoo_header(self)
    }

    fn chunks(&self) -> impl Iterator<Item = (i64, Cow<'_, [u8]>)> {
        dump::cuckoo_chunks(self).map(|(next, piece)| (next, Cow::Borrowed(piece)))
    }

    fn arrays(&self) -> usize {
        self.sub_filters()
    }

    fn size_in_bytes(&self) -> u64 {
        CuckooFilter::size_in_bytes(self)
    }

    fn arrays_mut(&mut self) -> Vec<&mut Vec<u8>> {
        self.arrays_to_move()
    }
}

/// A native filter and its names.
trait Named: Imaged + Clone + 'static {
    const NAME: &'static CStr;
    const LOAD_COMMAND: &'static CStr;

    fn data_type() -> &'static DataType;
}

impl Named for NativeBloom {
    const NAME: &'static CStr = c"ironbloom";
    const LOAD_COMMAND: &'static CStr = c"BF.LOADCHUNK";

    fn data_type() -> &'static DataType {
        static TYPE: DataType = DataType::new();
        &TYPE
    }
}

impl Named for NativeCuckoo {
    const NAME: &'static CStr = c"ironcucko";
    const LOAD_COMMAND: &'static CStr = c"CF.LOADCHUNK";

    fn data_type() -> &'static DataType {
        static TYPE: DataType = DataType::new();
        &TYPE
    }
}

impl<T: Named> Value for Native<T> {
    const NAME: &'static CStr = T::NAME;
    const VERSION: u32 = file::VERSION;
    const LOAD_COMMAND: &'static CStr = T::LOAD_COMMAND;

    fn data_type() -> &'static DataType {
        T::data_type()
    }

    fn load(from: &mut impl FieldReader, version: u32) -> Result<Self, LoadError> {
        file::load(from, version)
    }

    fn save(&self, to: &mut impl FieldWriter) {
        file::save(self, to);
    }

    fn header(&self) -> Vec<u8> {
        Native::header(self)
    }

    fn chunks(&self) -> impl Iterator<Item = (i64, Cow<'_, [u8]>)> {
        let mut iterator = 1;
        std::iter::from_fn(move || {
            let (next, piece) = self.piece(iterator)?;
            iterator = next;
            Some((next, piece))
        })
    }

    /// Some twenty at most, so they do not count.
    fn arrays(&self) -> usize {
        1
    }

    fn size_in_bytes(&self) -> u64 {
        Native::size_in_bytes(self)
    }

    /// None: their cache lines start inside the allocation, and servers leave allocations of this size in place anyway.
    fn arrays_mut(&mut self) -> Vec<&mut Vec<u8>> {
        Vec::new()
    }
}
