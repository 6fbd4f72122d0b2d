//! Keccak-256 as in Ethereum: before NIST changed the padding to that of SHA-3.

/// Bytes absorbed between two permutations.
const RATE: usize = 136;

/// Returns the Keccak-256 hash of some bytes.
pub(crate) fn keccak256(bytes: &[u8]) -> [u8; 32] {
    let mut state = [0; 25];
    let (blocks, rest) = bytes.as_chunks::<RATE>();
    for block in blocks {
        absorb(&mut state, block);
    }
    let mut last = [0; RATE];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x01; // SHA-3 has 0x06
    last[RATE - 1] |= 0x80;
    absorb(&mut state, &last);
    let mut hash = [0; 32];
    for (bytes, word) in hash.chunks_exact_mut(8).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    hash
}

fn absorb(state: &mut [u64; 25], block: &[u8; RATE]) {
    let (words, _) = block.as_chunks::<8>();
    for (lane, word) in state.iter_mut().zip(words) {
        *lane ^= u64::from_le_bytes(*word);
    }
    keccak::f1600(state);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        keccak256(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The vectors of the Keccak team's submission (and, the first, the code hash of an account
    /// without code), recomputed with `eth-hash` 0.8 over pycryptodome.
    #[test]
    fn hashes_are_those_of_the_reference_implementation() {
        let empty = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
        assert_eq!(hex(b""), empty);
        let abc = "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45";
        assert_eq!(hex(b"abc"), abc);
        // The topic of ERC-20 transfers.
        let transfer = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
        assert_eq!(hex(b"Transfer(address,address,uint256)"), transfer);
        // Around the length of a block.
        for (len, start) in [
            (135, "34367dc248bbd832"),
            (136, "a6c4d403279fe3e0"),
            (137, "d869f639c7046b49"),
            (300, "5b7e0e47a96f32a8"),
        ] {
            assert!(hex(&vec![b'a'; len]).starts_with(start), "{len} bytes");
        }
    }
}
