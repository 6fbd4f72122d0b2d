//! What all filters have in common, for code that is generic over them.

/// Something that answers "might this be here?".
///
/// For callers that are generic over kinds, such as tests, benchmarks and the index. Everything else is an
/// inherent method of each kind; a filter read from a file of unknown kind is an [`AnyFilter`](crate::AnyFilter).
pub trait Filter {
    /// Might the key with this hash be here? False is certain.
    fn contains_hash(&self, hash: u64) -> bool;

    /// Bytes of memory, or of file if it is mapped.
    fn size_in_bytes(&self) -> usize;
}
