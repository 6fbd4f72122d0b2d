//! How another program finds the bits of a key: one rule per program, each in the file of its format.

use crate::hash::{KeyForm, Modulus};

/// The program's rule that a foreign filter follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// Apache Spark, version 1: 31-bit positions.
    Spark1,
    /// Apache Spark, version 2.
    Spark2 {
        /// Seed of the hash.
        seed: i32,
    },
    /// Guava, `MURMUR128_MITZ_32`: 31-bit positions. Only read.
    Guava32,
    /// Guava, `MURMUR128_MITZ_64`.
    Guava64,
    /// Apache DataSketches.
    DataSketches {
        /// Seed of the hash.
        seed: u64,
    },
    /// bits-and-blooms/bloom, in Go.
    BitsAndBlooms,
    /// DCSO/bloom, in Go.
    Dcso,
    /// LevelDB. Only read.
    LevelDb,
    /// RocksDB, since format 5. Only read.
    RocksDb,
    /// Ethereum's logs bloom.
    Ethereum,
}

/// Derives the positions of a key from a hash, whose width depends on the rule.
pub(crate) trait Probing: Copy {
    /// The hash of a key.
    type Hash: Copy + Default;

    fn hash(self, key: &[u8]) -> Self::Hash;

    /// Yields the positions in order, starting with this probe, without end.
    fn positions(self, hash: Self::Hash, range: Modulus, first: u32) -> impl Iterator<Item = u64>;
}

/// Runs code with the probing of a rule, compiled for each.
macro_rules! with_probing {
    ($rule:expr, |$probing:ident| $body:expr) => {{
        use $crate::format::foreign::{
            bits_and_blooms, datasketches, dcso, ethereum, guava, leveldb, rocksdb, spark,
        };
        match $rule {
            $crate::kinds::Rule::Spark1 => with_probing!(@spark::V1, $probing, $body),
            $crate::kinds::Rule::Spark2 { seed } => {
                with_probing!(@spark::V2 { seed }, $probing, $body)
            }
            $crate::kinds::Rule::Guava32 => with_probing!(@guava::Mitz32, $probing, $body),
            $crate::kinds::Rule::Guava64 => with_probing!(@guava::Mitz64, $probing, $body),
            $crate::kinds::Rule::DataSketches { seed } => {
                with_probing!(@datasketches::TwoHashes { seed }, $probing, $body)
            }
            $crate::kinds::Rule::BitsAndBlooms => {
                with_probing!(@bits_and_blooms::FourHashes, $probing, $body)
            }
            $crate::kinds::Rule::Dcso => with_probing!(@dcso::Generator, $probing, $body),
            $crate::kinds::Rule::LevelDb => with_probing!(@leveldb::Rotated, $probing, $body),
            $crate::kinds::Rule::RocksDb => with_probing!(@rocksdb::InLine, $probing, $body),
            $crate::kinds::Rule::Ethereum => with_probing!(@ethereum::Pairs, $probing, $body),
        }
    }};
    (@$which:expr, $probing:ident, $body:expr) => {{
        let $probing = $which;
        $body
    }};
}
pub(super) use with_probing;

impl Rule {
    /// Its number in files, its program and name, and the forms of the program's keys.
    fn fields(self) -> (u64, &'static str, &'static [KeyForm]) {
        use KeyForm::{Chars, Double, Hex, Int, Long, Text};
        match self {
            Self::Spark1 => (1, "Spark, version 1", &[Text, Long]),
            Self::Spark2 { .. } => (2, "Spark, version 2", &[Text, Long]),
            Self::Guava32 => (3, "Guava, MURMUR128_MITZ_32", &[Text, Chars, Long, Int]),
            Self::Guava64 => (4, "Guava, MURMUR128_MITZ_64", &[Text, Chars, Long, Int]),
            Self::DataSketches { .. } => (5, "DataSketches", &[Text, Long, Double]),
            Self::BitsAndBlooms => (6, "bits-and-blooms", &[Text]),
            Self::Dcso => (7, "DCSO", &[Text]),
            Self::LevelDb => (8, "LevelDB", &[Text]),
            Self::RocksDb => (9, "RocksDB, FastLocalBloom", &[Text]),
            Self::Ethereum => (10, "Ethereum, logs", &[Hex]),
        }
    }

    /// Its number in files.
    pub(crate) fn number(self) -> u64 {
        self.fields().0
    }

    /// The seed of its hash in files, 0 without a seed.
    pub(crate) fn seed(self) -> u64 {
        match self {
            Self::Spark2 { seed } => seed.cast_unsigned().into(),
            Self::DataSketches { seed } => seed,
            _ => 0,
        }
    }

    /// Returns the rule with this number and seed.
    pub(crate) fn from_number(number: u64, seed: u64) -> Option<Self> {
        let rule = match number {
            1 => Self::Spark1,
            2 => Self::Spark2 { seed: u32::try_from(seed).ok()?.cast_signed() },
            3 => Self::Guava32,
            4 => Self::Guava64,
            5 => Self::DataSketches { seed },
            6 => Self::BitsAndBlooms,
            7 => Self::Dcso,
            8 => Self::LevelDb,
            9 => Self::RocksDb,
            10 => Self::Ethereum,
            _ => return None,
        };
        (rule.seed() == seed).then_some(rule)
    }

    /// The program and the name of the rule.
    pub fn name(self) -> &'static str {
        self.fields().1
    }

    /// Returns true if an empty key is inserted like any other, false if it is ignored.
    pub(crate) fn takes_empty(self) -> bool {
        !matches!(self, Self::DataSketches { .. })
    }

    /// Returns true if all bits of a key are in one 64-byte line.
    pub(crate) fn in_lines(self) -> bool {
        self == Self::RocksDb
    }

    /// Unit of the number of bits: files count words, bytes or lines. Positions are remainders by the number of bits,
    /// so a partial unit would make a different filter once written.
    pub(crate) fn unit(self) -> u64 {
        match self {
            Self::Spark1
            | Self::Spark2 { .. }
            | Self::Guava32
            | Self::Guava64
            | Self::DataSketches { .. } => 64,
            Self::BitsAndBlooms | Self::Dcso => 1,
            Self::LevelDb => 8,
            Self::RocksDb => 8 * crate::kernel::LINE_BYTES as u64,
            Self::Ethereum => crate::format::foreign::ethereum::BITS,
        }
    }

    /// Returns true if bits and probes meet the rule's own conditions.
    pub(crate) fn fits(self, bits: u64, probes: u32) -> bool {
        let is_whole = bits.is_multiple_of(self.unit());
        is_whole && (self != Self::Ethereum || (bits, probes) == (self.unit(), 3))
    }

    /// The possible forms of keys.
    pub fn forms(self) -> impl Iterator<Item = KeyForm> {
        // Any bytes can be written in digits.
        let hex = (!self.fields().2.contains(&KeyForm::Hex)).then_some(KeyForm::Hex);
        self.fields().2.iter().copied().chain(hex)
    }

    /// The form of keys, if only one is possible.
    pub fn only_form(self) -> Option<KeyForm> {
        match self.fields().2 {
            &[form] => Some(form),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ParamError;
    use crate::kinds::{AnyFilter, Foreign};

    /// Files of these programs count words, so a filter of 100 bits would come back as one of 128, with different
    /// positions.
    #[test]
    fn a_filter_has_whole_words_and_so_comes_back_with_as_many_bits() {
        for rule in [Rule::Spark1, Rule::Guava64, Rule::DataSketches { seed: 1 }] {
            let refused = Foreign::new(rule, 100, 3, Some(KeyForm::Long)).unwrap_err();
            assert!(matches!(refused, ParamError::OutOfRange { value: 100, least: 128, .. }));
            let mut filter = Foreign::new(rule, 128, 3, Some(KeyForm::Long)).unwrap();
            filter.insert(1).unwrap();
            let format = rule.format().unwrap();
            let bytes = format.write(&AnyFilter::Foreign(filter.clone())).unwrap();
            let AnyFilter::Foreign(back) = format.read(&bytes).unwrap() else { unreachable!() };
            assert_eq!((back.bits(), back.words()), (filter.bits(), filter.words()));
        }
        for rule in [Rule::BitsAndBlooms, Rule::Dcso] {
            assert_eq!(Foreign::new(rule, 100, 3, None).unwrap().bits(), 100);
        }
        assert!(Foreign::new(Rule::LevelDb, 100, 3, None).is_err());
        assert!(Foreign::new(Rule::RocksDb, 1000, 3, None).is_err());
        assert!(Foreign::new(Rule::Ethereum, 4096, 3, None).is_err());
    }
}
