//! The 256-byte file header. The parent module's documentation has the table.

use std::io::Read;

use xxhash_rust::xxh3::xxh3_64;

use super::ReadError;
use super::read::read_up_to;
use crate::error::DecodeError;
use crate::format::Kind;
use crate::hash::{HashFn, HashKey, KeyForm, KeyType, KeyTypes};
use crate::kernel::LINE_BYTES;

const MAGIC: [u8; 8] = [0x89, b'I', b'B', b'F', b'\r', b'\n', 0x1a, b'\n'];
const VERSION: u16 = 1;
const VERSION_AT: usize = MAGIC.len();
const KIND_AT: usize = VERSION_AT + 2;
const HASH_AT: usize = KIND_AT + 2;
const ENCODING_AT: usize = HASH_AT + 2;
const SEED_AT: usize = ENCODING_AT + 2;
const LEN_AT: usize = SEED_AT + 8;
const CAPACITY_AT: usize = LEN_AT + 8;
const PAYLOAD_AT: usize = CAPACITY_AT + 8;
const CHUNK_AT: usize = PAYLOAD_AT + 8;
const SECOND_AT: usize = CHUNK_AT + 8;
const PARAMS_AT: usize = SECOND_AT + 8;
const PARAMS: usize = 23;
pub(super) const CHECKSUM_AT: usize = PARAMS_AT + 8 * PARAMS;
pub(super) const HEADER_BYTES: usize = CHECKSUM_AT + 8;
pub(super) const CHUNK_BYTES: usize = 64 * 1024;

/// Maximum number of keys, so that counts can be added without overflow.
const MAX_KEYS: u64 = 1 << 60;

const _: () = assert!(HEADER_BYTES == 256 && HEADER_BYTES.is_multiple_of(LINE_BYTES));

/// The header fields of a filter of any kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The kind of filter.
    pub kind: Kind,
    /// The function its keys were hashed with.
    pub hash_fn: HashFn,
    /// The recorded types of its keys; for rows, those of all attributes.
    pub key_types: KeyTypes,
    /// Number of keys counted.
    pub len: u64,
    /// The capacity: the number of keys planned for.
    pub capacity: u64,
    /// Bytes of the payload.
    pub payload_bytes: u64,
    pub(crate) params: [u64; PARAMS],
}
impl Header {
    /// Creates a header without parameters, for an empty payload.
    pub(crate) fn new(kind: Kind, hash_fn: HashFn, len: u64, capacity: u64) -> Self {
        let key_types = KeyTypes::NONE;
        Self { kind, hash_fn, key_types, len, capacity, payload_bytes: 0, params: [0; PARAMS] }
    }

    /// Bytes of the whole file, from the magic to the last checksum.
    pub fn file_bytes(&self) -> u64 {
        file_bytes(self.payload_bytes)
            .expect("checked with the header, or made from an array in memory")
    }

    pub(crate) fn with_params(mut self, params: &[u64]) -> Self {
        self.params[..params.len()].copy_from_slice(params);
        self
    }

    /// Returns the N parameters of a kind. The others must be zero: otherwise a reader would
    /// silently drop what it does not understand when writing the file back.
    pub(crate) fn first_params<const N: usize>(&self) -> Result<[u64; N], DecodeError> {
        let unknown = self.params[N..].iter().find(|&&value| value != 0);
        match unknown {
            None => Ok(std::array::from_fn(|i| self.params[i])),
            Some(&value) => Err(DecodeError::Invalid { what: "unused parameter", value }),
        }
    }
}
pub(super) fn chunk_count(payload_bytes: u64) -> u64 {
    payload_bytes.div_ceil(CHUNK_BYTES as u64)
}

/// Length of a file with this payload, or `None` if it exceeds 64 bits.
pub(super) fn file_bytes(payload_bytes: u64) -> Option<u64> {
    let table = chunk_count(payload_bytes).checked_mul(8)?.checked_add(8)?;
    payload_bytes.checked_add(table)?.checked_add(HEADER_BYTES as u64)
}
fn get16(bytes: &[u8; HEADER_BYTES], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn get64(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn hash_number(hash_fn: HashFn) -> u16 {
    match hash_fn {
        HashFn::Xxh3 { .. } | HashFn::Typed { .. } => 1,
        HashFn::Xxh64 { .. } => 2,
        HashFn::External { .. } => 3,
        HashFn::Foreign { .. } => 4,
        HashFn::SipHash13 { in_files: true, .. } => 5,
        HashFn::SipHash13 { in_files: false, .. } | HashFn::Locked { .. } => 6,
    }
}

/// Returns the seed, and the second half of a key that is in the file.
fn seed_words(hash_fn: HashFn) -> [u64; 2] {
    match hash_fn {
        HashFn::SipHash13 { key, in_files: true } => key.words(),
        other => [other.seed(), 0],
    }
}

fn encoding_number(kind: Kind, hash_fn: HashFn, key_types: KeyTypes) -> u16 {
    let form = match (kind, hash_fn) {
        (Kind::Bitmap, _) => 2,
        (_, HashFn::External { .. }) => 0,
        (_, HashFn::Foreign { .. }) => 4,
        (Kind::Parallel | Kind::Joint, _) => 3,
        _ => 1,
    };
    match hash_fn {
        HashFn::Typed { keys, .. } => form | type_number(keys) << TYPE_SHIFT,
        HashFn::Foreign { form: keys, .. } => form | KeyForm::number(keys) << TYPE_SHIFT,
        HashFn::External { .. } => form,
        _ if key_types.is_empty() => form,
        _ => form | (NOTED | u16::from(key_types.bits())) << TYPE_SHIFT,
    }
}

/// Position of the key type in the encoding. Zero if it is not recorded.
const TYPE_SHIFT: u32 = 8;

/// Flag for noted types, a bit each, as opposed to a declared one.
const NOTED: u16 = 0x80;

/// Decodes the noted types: empty if there are none, or unknown ones, which the caller notices.
fn decode_types(encoding: u16) -> KeyTypes {
    let bits = encoding >> TYPE_SHIFT;
    let noted = (bits & NOTED != 0).then(|| KeyTypes::from_bits((bits & !NOTED) as u8));
    noted.flatten().unwrap_or_default()
}

fn type_number(keys: KeyType) -> u16 {
    match keys {
        KeyType::Bytes => 1,
        KeyType::Integer => 2,
        KeyType::Digest => 3,
        KeyType::Hashed => 4,
        KeyType::Value => 5,
    }
}

/// Decodes the hash function of these fields; the caller checks their consistency with the
/// encoding.
fn decode_hash(
    number: u16,
    encoding: u16,
    [seed, second]: [u64; 2],
) -> Result<HashFn, DecodeError> {
    let types =
        [KeyType::Bytes, KeyType::Integer, KeyType::Digest, KeyType::Hashed, KeyType::Value];
    let keys = types.into_iter().find(|&keys| type_number(keys) == encoding >> TYPE_SHIFT);
    match (number, keys) {
        (1, Some(keys)) => Ok(HashFn::Typed { keys, seed }),
        (1, None) => Ok(HashFn::Xxh3 { seed }),
        (2, _) => Ok(HashFn::Xxh64 { seed }),
        (3, _) => Ok(HashFn::External { id: seed }),
        (4, _) => match KeyForm::from_number(encoding >> TYPE_SHIFT) {
            Some(form) => Ok(HashFn::Foreign { form, seed }),
            None => Err(DecodeError::Invalid { what: "key encoding", value: encoding.into() }),
        },
        (5, _) => {
            Ok(HashFn::SipHash13 { key: HashKey::from_words([seed, second]), in_files: true })
        }
        (6, _) => Ok(HashFn::Locked { check: seed }),
        _ => Err(DecodeError::Invalid { what: "hash function", value: number.into() }),
    }
}

pub(super) fn encode_header(header: &Header) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &MAGIC);
    put(VERSION_AT, &VERSION.to_le_bytes());
    put(KIND_AT, &(header.kind as u16).to_le_bytes());
    put(HASH_AT, &hash_number(header.hash_fn).to_le_bytes());
    let encoding = encoding_number(header.kind, header.hash_fn, header.key_types);
    put(ENCODING_AT, &encoding.to_le_bytes());
    let [seed, second] = seed_words(header.hash_fn);
    put(SEED_AT, &seed.to_le_bytes());
    put(SECOND_AT, &second.to_le_bytes());
    put(LEN_AT, &header.len.to_le_bytes());
    put(CAPACITY_AT, &header.capacity.to_le_bytes());
    put(PAYLOAD_AT, &header.payload_bytes.to_le_bytes());
    put(CHUNK_AT, &(CHUNK_BYTES as u64).to_le_bytes());
    for (i, param) in header.params.iter().enumerate() {
        put(PARAMS_AT + 8 * i, &param.to_le_bytes());
    }
    let checksum = xxh3_64(&bytes[..CHECKSUM_AT]);
    bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn decode_header(bytes: &[u8; HEADER_BYTES]) -> Result<Header, DecodeError> {
    if bytes[..MAGIC.len()] != MAGIC {
        return Err(DecodeError::NotAFilter);
    }
    let version = get16(bytes, VERSION_AT);
    let whole = xxh3_64(&bytes[..CHECKSUM_AT]) == get64(bytes, CHECKSUM_AT);
    if !whole {
        return Err(DecodeError::Damaged { part: "header", offset: 0, len: HEADER_BYTES as u64 });
    }
    if version != VERSION {
        return Err(DecodeError::Version { found: version });
    }
    let invalid = |what, value: u16| DecodeError::Invalid { what, value: u64::from(value) };
    let kind = get16(bytes, KIND_AT);
    let kind = Kind::from_number(kind).ok_or(invalid("kind", kind))?;
    let seed = [SEED_AT, SECOND_AT].map(|at| get64(bytes, at));
    let encoding = get16(bytes, ENCODING_AT);
    let hash_fn = decode_hash(get16(bytes, HASH_AT), encoding, seed)?;
    let key_types = decode_types(encoding);
    if encoding != encoding_number(kind, hash_fn, key_types) {
        return Err(invalid("key encoding", encoding));
    }
    let is_foreign = matches!(kind, Kind::Foreign | Kind::RedisBloom);
    if is_foreign != matches!(hash_fn, HashFn::Foreign { .. }) {
        return Err(invalid("hash function", hash_number(hash_fn)));
    }
    let chunk = get64(bytes, CHUNK_AT);
    if chunk != CHUNK_BYTES as u64 {
        return Err(DecodeError::Invalid { what: "chunk length", value: chunk });
    }
    if seed != seed_words(hash_fn) {
        return Err(DecodeError::Invalid { what: "reserved field", value: seed[1] });
    }
    let len = get64(bytes, LEN_AT);
    if len > MAX_KEYS {
        return Err(DecodeError::Invalid { what: "number of keys", value: len });
    }
    let payload_bytes = get64(bytes, PAYLOAD_AT);
    if !payload_bytes.is_multiple_of(LINE_BYTES as u64) || file_bytes(payload_bytes).is_none() {
        return Err(DecodeError::Invalid { what: "payload length", value: payload_bytes });
    }
    Ok(Header {
        kind,
        hash_fn,
        key_types: key_types.read(len),
        len,
        capacity: get64(bytes, CAPACITY_AT),
        payload_bytes,
        params: std::array::from_fn(|i| get64(bytes, PARAMS_AT + 8 * i)),
    })
}

/// Reads the header and its checksum, which seeds that of the table.
pub(super) fn read_header(input: &mut impl Read) -> Result<(Header, u64), ReadError> {
    let mut bytes = [0; HEADER_BYTES];
    let got = read_up_to(input, &mut bytes)?;
    if got < HEADER_BYTES {
        let magic = got.min(MAGIC.len());
        return Err(if got == 0 || bytes[..magic] != MAGIC[..magic] {
            DecodeError::NotAFilter
        } else {
            DecodeError::Length { expected: HEADER_BYTES as u64, found: got as u64 }
        }
        .into());
    }
    Ok((decode_header(&bytes)?, get64(&bytes, CHECKSUM_AT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoding(kind: Kind, hash_fn: HashFn) -> u16 {
        let bytes = encode_header(&Header::new(kind, hash_fn, 0, 0));
        assert_eq!(decode_header(&bytes).unwrap().hash_fn, hash_fn);
        get16(&bytes, ENCODING_AT)
    }

    /// Pins values that files rely on.
    #[test]
    fn the_type_of_the_keys_is_recorded_and_none_is_what_it_always_was() {
        let typed = |keys| HashFn::Typed { keys, seed: 9 };
        assert_eq!(encoding(Kind::Bloom, HashFn::Xxh3 { seed: 9 }), 1);
        assert_eq!(encoding(Kind::Bloom, typed(KeyType::Bytes)), 0x101);
        assert_eq!(encoding(Kind::Bloom, typed(KeyType::Integer)), 0x201);
        assert_eq!(encoding(Kind::Cuckoo, typed(KeyType::Digest)), 0x301);
        assert_eq!(encoding(Kind::Cuckoo, typed(KeyType::Hashed)), 0x401);
        assert_eq!(encoding(Kind::Cuckoo, typed(KeyType::Value)), 0x501);
        assert_eq!(encoding(Kind::Joint, typed(KeyType::Integer)), 0x203);
    }

    /// Pins values that files rely on.
    #[test]
    fn types_that_were_noted_and_keys_of_the_hash_are_recorded() {
        let noted = |hash_fn, types: &[KeyType]| {
            let mut header = Header::new(Kind::Bloom, hash_fn, 1, 1);
            header.key_types = types.iter().copied().collect();
            let bytes = encode_header(&header);
            let back = decode_header(&bytes).unwrap();
            assert_eq!(back.key_types, header.key_types);
            (
                get16(&bytes, HASH_AT),
                get16(&bytes, ENCODING_AT),
                [16, 56].map(|at| get64(&bytes, at)),
            )
        };
        use KeyType::{Bytes, Hashed, Integer, Value};
        let plain = HashFn::Xxh3 { seed: 9 };
        assert_eq!(noted(plain, &[]), (1, 1, [9, 0]));
        assert_eq!(noted(plain, &[Bytes]), (1, 0x8101, [9, 0]));
        assert_eq!(noted(plain, &[Integer]), (1, 0x8201, [9, 0]));
        assert_eq!(noted(plain, &[Hashed, Value]), (1, 0x8c01, [9, 0]));
        assert_eq!(noted(HashFn::Xxh64 { seed: 9 }, &[Integer, Bytes]), (2, 0x8301, [9, 0]));
        let key = HashKey::from_words([3, 4]);
        let with_key = HashFn::SipHash13 { key, in_files: true };
        assert_eq!(noted(with_key, &[Bytes]), (5, 0x8101, [3, 4]));
        assert_eq!(noted(HashFn::secret(key), &[]), (6, 1, [key.check(), 0]));
    }

    #[test]
    fn a_type_that_is_unknown_or_of_a_function_without_types_is_refused() {
        let refused = |hash_fn, encoding: u16| {
            let mut bytes = encode_header(&Header::new(Kind::Bloom, hash_fn, 0, 0));
            bytes[ENCODING_AT..SEED_AT].copy_from_slice(&encoding.to_le_bytes());
            let checksum = xxh3_64(&bytes[..CHECKSUM_AT]);
            bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
            let value = u64::from(encoding);
            decode_header(&bytes) == Err(DecodeError::Invalid { what: "key encoding", value })
        };
        assert!(refused(HashFn::default(), 0x601));
        assert!(refused(HashFn::default(), 0x8001)); // noted, but no types
        assert!(refused(HashFn::default(), 0x9001)); // noted, of a future type
        assert!(refused(HashFn::External { id: 0 }, 0x8100));
        assert!(refused(HashFn::default(), 0x203));
        assert!(refused(HashFn::Xxh64 { seed: 0 }, 0x201));
        assert!(refused(HashFn::External { id: 0 }, 0x200));
    }
}
