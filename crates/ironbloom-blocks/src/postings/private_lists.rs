//! Lists of single values while a column is encoded. A column of frequent values consists of these
//! alone, so they are compact: gaps with seven bits per byte.

/// Lists of blocks, by value.
#[derive(Default)]
pub(super) struct PrivateLists {
    /// The lists, with ascending keys.
    pub(super) lists: Vec<Ends>,
    /// Total number of blocks in all lists.
    pub(super) entries: u64,
    gaps: Vec<u8>,
}

/// One list, and the end of its gaps.
pub(super) struct Ends {
    key: u32,
    len: u32,
    end: usize,
}

/// The blocks of a value.
#[derive(Clone, Copy)]
pub(super) struct PrivateList<'a> {
    /// The fingerprint of the value.
    pub(super) key: u32,
    /// Number of blocks.
    pub(super) len: u32,
    gaps: &'a [u8],
}

impl PrivateLists {
    /// Adds a list of ascending blocks. Keys must ascend.
    pub(super) fn add(&mut self, key: u32, blocks: impl Iterator<Item = u32>) {
        let (mut last, mut len) = (0, 0);
        for block in blocks {
            let mut gap = block - last;
            while gap >= 0x80 {
                self.gaps.push(gap as u8 | 0x80);
                gap >>= 7;
            }
            self.gaps.push(gap as u8);
            last = block;
            len += 1;
        }
        self.entries += u64::from(len);
        self.lists.push(Ends { key, len, end: self.gaps.len() });
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = PrivateList<'_>> {
        let starts = std::iter::once(0).chain(self.lists.iter().map(|list| list.end));
        self.lists.iter().zip(starts).map(|(&Ends { key, len, end }, start)| PrivateList {
            key,
            len,
            gaps: &self.gaps[start..end],
        })
    }

    /// Memory in use, in bytes.
    pub(super) fn held_bytes(&self) -> u64 {
        (self.gaps.len() + size_of_val(&self.lists[..])) as u64
    }
}

impl<'a> PrivateList<'a> {
    /// The blocks, ascending.
    pub(super) fn blocks(self) -> impl Iterator<Item = u32> + 'a {
        let mut bytes = self.gaps.iter();
        let mut block = 0;
        std::iter::from_fn(move || {
            let (mut gap, mut shift) = (0, 0);
            loop {
                let byte = *bytes.next()?;
                gap |= u32::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
                shift += 7;
            }
            block += gap;
            Some(block)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_what_was_added() {
        let lists: [&[u32]; 5] =
            [&[0], &[], &[0, 127, 128, 16_511, 16_512], &[u32::MAX], &[5, 6, 1 << 28]];
        let mut all = PrivateLists::default();
        for (key, list) in (7..).zip(lists) {
            all.add(key, list.iter().copied());
        }
        let found: Vec<(u32, u32, Vec<u32>)> =
            all.iter().map(|list| (list.key, list.len, list.blocks().collect())).collect();
        let expected = (7..).zip(lists).map(|(key, list)| (key, list.len() as u32, list.to_vec()));
        assert_eq!(found, expected.collect::<Vec<_>>());
        assert_eq!(all.entries, 10);
    }
}
