//! The two filters as values of the server.

use std::ffi::CStr;

use crate::engine::value::{DataType, Value};
use crate::redisbloom::chain::Chain;
use crate::redisbloom::cuckoo::CuckooFilter;
use crate::redisbloom::dump;
use crate::redisbloom::error::DecodeError;
use crate::redisbloom::rdb::{self, FieldReader, FieldWriter};

impl Value for Chain {
    const NAME: &'static CStr = c"MBbloom--";
    const VERSION: u32 = rdb::VERSION;
    const LOAD_COMMAND: &'static CStr = c"BF.LOADCHUNK";

    fn data_type() -> &'static DataType {
        static TYPE: DataType = DataType::new();
        &TYPE
    }

    fn load(from: &mut impl FieldReader, version: u32) -> Result<Self, DecodeError> {
        rdb::load_chain(from, version)
    }

    fn save(&self, to: &mut impl FieldWriter) {
        rdb::save_chain(self, to);
    }

    fn header(&self) -> Vec<u8> {
        dump::chain_header(self)
    }

    fn chunk(&self, iterator: i64) -> Option<(i64, &[u8])> {
        dump::chain_chunk(self, iterator)
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

    fn load(from: &mut impl FieldReader, version: u32) -> Result<Self, DecodeError> {
        rdb::load_cuckoo(from, version)
    }

    fn save(&self, to: &mut impl FieldWriter) {
        rdb::save_cuckoo(self, to);
    }

    fn header(&self) -> Vec<u8> {
        dump::cuckoo_header(self)
    }

    fn chunk(&self, iterator: i64) -> Option<(i64, &[u8])> {
        dump::cuckoo_chunk(self, iterator)
    }

    fn size_in_bytes(&self) -> u64 {
        CuckooFilter::size_in_bytes(self)
    }

    fn arrays_mut(&mut self) -> Vec<&mut Vec<u8>> {
        self.arrays_to_move()
    }
}
