//! A buffer for a part of a source, because successive reads are often close together.

use std::io;

use super::source::RecordingSource;

/// Consecutive bytes of a source.
#[derive(Debug)]
pub(crate) struct Window {
    at: u64,
    /// The number of valid bytes in the buffer.
    filled: usize,
    buffer: Box<[u8]>,
}

impl Window {
    pub(crate) fn new(len: usize) -> Self {
        Self { at: 0, filled: 0, buffer: vec![0; len].into() }
    }

    /// Returns `len` bytes from `at` on, or fewer at the end of the source; at most the length of the buffer.
    pub(crate) fn get(&mut self, source: &dyn RecordingSource, at: u64, len: usize) -> io::Result<&[u8]> {
        let len = len.min(self.buffer.len());
        if let Some(offset) = self.offset(at, len) {
            return Ok(&self.buffer[offset..offset + len]);
        }
        self.filled = 0;
        self.filled = source.read_at(at, &mut self.buffer)?;
        self.at = at;
        Ok(&self.buffer[..len.min(self.filled)])
    }

    /// Returns all buffered bytes from `at` on, at least `len` unless the source ends.
    pub(crate) fn get_more(&mut self, source: &dyn RecordingSource, at: u64, len: usize) -> io::Result<&[u8]> {
        let offset = self.offset(at, len);
        if offset.is_none() {
            self.get(source, at, len)?;
        }
        Ok(&self.buffer[offset.unwrap_or(0)..self.filled])
    }

    fn offset(&self, at: u64, len: usize) -> Option<usize> {
        let offset = usize::try_from(at.checked_sub(self.at)?).ok()?;
        (offset.checked_add(len)? <= self.filled).then_some(offset)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn every_window_has_the_bytes_of_the_source() {
        let bytes: Arc<[u8]> = (0..=255).collect();
        let mut window = Window::new(16);
        for (at, len) in
            [(0, 4), (4, 4), (12, 4), (13, 4), (250, 16), (251, 2), (255, 1), (256, 3), (1_000, 1), (3, 99)]
        {
            let from = at.min(bytes.len());
            let expected = &bytes[from..(from + len.min(16)).min(bytes.len())];
            assert_eq!(window.get(&bytes, at as u64, len).unwrap(), expected, "{at} {len}");
        }
    }
}
