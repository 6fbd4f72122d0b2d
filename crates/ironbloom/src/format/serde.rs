//! Filters inside other documents: with the feature `serde`, every kind is stored as the bytes of
//! its `.ibf` file, checksums included, so reading returns what was written or an error.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::native::Persist;
use crate::kinds::{AnyFilter, with_kinds};

/// Bytes; in formats without bytes, such as JSON, a list of numbers.
struct Bytes<F>(PhantomData<F>);

/// Maximum bytes reserved for a list on its claimed length.
const MAX_RESERVED: usize = 1 << 16;

impl<'de, F: Persist> Visitor<'de> for Bytes<F> {
    type Value = F;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a filter")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<F, E> {
        F::from_bytes(bytes).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<F, A::Error> {
        let mut bytes = Vec::with_capacity(list.size_hint().unwrap_or(0).min(MAX_RESERVED));
        while let Some(byte) = list.next_element::<u8>()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

macro_rules! by_bytes {
    ($($filter:path),*) => {$(
        impl Serialize for $filter {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(&self.to_bytes())
            }
        }

        impl<'de> Deserialize<'de> for $filter {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_byte_buf(Bytes(PhantomData))
            }
        }
    )*};
}

macro_rules! kinds_by_bytes {
    ($($variant:ident($filter:ident) = $number:literal, $name:literal, $plans:path;)*) => {
        by_bytes!($($crate::kinds::$filter),*);
    };
}
with_kinds!(kinds_by_bytes);
by_bytes!(AnyFilter);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bloom, Cuckoo};

    #[test]
    fn a_filter_in_a_document_comes_back_or_is_refused() {
        let mut cuckoo = Cuckoo::with_rate(100, 0.01).unwrap();
        cuckoo.insert("alice").unwrap();
        let json = serde_json::to_string(&cuckoo).unwrap();
        assert_eq!(serde_json::from_str::<Cuckoo>(&json).unwrap(), cuckoo);
        assert_eq!(serde_json::from_str::<AnyFilter>(&json).unwrap(), cuckoo.clone().into());
        assert!(serde_json::from_str::<Bloom>(&json).unwrap_err().to_string().contains("cuckoo"));

        let mut bytes = cuckoo.to_bytes();
        *bytes.last_mut().unwrap() ^= 1;
        let damaged = serde_json::to_string(&bytes).unwrap();
        assert!(serde_json::from_str::<Cuckoo>(&damaged).is_err());
        assert!(serde_json::from_str::<Cuckoo>("[1, 2, 3]").is_err());
        assert!(serde_json::from_str::<Cuckoo>("\"text\"").is_err());
    }
}
