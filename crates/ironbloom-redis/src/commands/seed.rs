//! The option SEED of native filters: a hash that others cannot compute.
//!
//! ```text
//! SEED RANDOM         a new key of 128 bits, which is in files and dumps, and sent to replicas
//! SEED 32 digits      this key, in hexadecimal: filters with the same key can be merged
//! ```
//!
//! Who can choose items and knows how they are hashed can choose them so that they collide: false positives at will, and cuckoo
//! filters that are full early. SipHash-1-3 under a key that they do not know rules that out. Without the option, items are hashed
//! as `ironbloom build` hashes lines.

use ironbloom::{HashFn, HashKey};

use crate::engine::call::Call;

use super::{Refusal, text};

/// The hash function that argument `i` asks for.
pub(super) fn at(call: &Call<'_>, i: usize) -> Result<HashFn, Refusal> {
    let word = if i < call.count() { call.arg(i) } else { b"" };
    if word.eq_ignore_ascii_case(b"RANDOM") {
        return Ok(HashFn::random());
    }
    // A file of secrets may also have 16 plain bytes; an argument is text.
    let key = if word.len() == 32 { HashKey::parse(word) } else { None };
    Ok(HashFn::SipHash13 { key: key.ok_or(text::SEED)?, in_files: true })
}

/// The words that give another server the same function; none for the default.
pub(super) fn words(hash_fn: HashFn) -> Vec<String> {
    match hash_fn {
        HashFn::SipHash13 { key, .. } => {
            let digits = key.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            vec!["SEED".to_owned(), digits]
        }
        _ => Vec::new(),
    }
}
