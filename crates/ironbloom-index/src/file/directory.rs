//! The directory as bytes: written field by field, read with every length checked first.

/// Where a section is, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) checksum: u64,
}

/// Appends fields.
#[derive(Default)]
pub(super) struct Fields(pub(super) Vec<u8>);

impl Fields {
    pub(super) fn put_u8(&mut self, number: u8) {
        self.0.push(number);
    }

    pub(super) fn put_u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn put_u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// A count or length of things in memory.
    ///
    /// # Panics
    ///
    /// If there are 2^32 of them: there are never that many names, columns, sources or segments.
    pub(super) fn put_len(&mut self, len: usize) {
        self.put_u32(u32::try_from(len).expect("fewer than 2^32"));
    }

    pub(super) fn put_name(&mut self, name: &str) {
        self.put_bytes(name.as_bytes());
    }

    pub(super) fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_len(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// A number of up to 16 bytes.
    pub(super) fn put_wide(&mut self, number: u128) {
        let len = 16 - number.leading_zeros() as usize / 8;
        self.put_u8(len as u8);
        self.0.extend_from_slice(&number.to_le_bytes()[..len]);
    }

    pub(super) fn put_extent(&mut self, extent: Extent) {
        self.put_u64(extent.start);
        self.put_u64(extent.bytes);
        self.put_u64(extent.checksum);
    }
}

/// The remaining fields. `None` wherever there are too few bytes, or invalid ones.
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(super) fn wide(&mut self) -> Option<u128> {
        let len = usize::from(self.u8()?);
        let mut bytes = [0; 16];
        bytes.get_mut(..len)?.copy_from_slice(self.take(len)?);
        Some(u128::from_le_bytes(bytes))
    }

    /// A count of things that take at least this many bytes each: if the bytes are missing, nothing is allocated.
    pub(super) fn count(&mut self, least_bytes: usize) -> Option<usize> {
        let count = usize::try_from(self.u32()?).ok()?;
        (count.checked_mul(least_bytes)? <= self.0.len()).then_some(count)
    }

    pub(super) fn name(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    pub(super) fn bytes(&mut self) -> Option<Vec<u8>> {
        let len = self.count(1)?;
        Some(self.take(len)?.to_vec())
    }

    pub(super) fn extent(&mut self) -> Option<Extent> {
        Some(Extent { start: self.u64()?, bytes: self.u64()?, checksum: self.u64()? })
    }
}
