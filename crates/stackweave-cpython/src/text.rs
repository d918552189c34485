//! Reads the contents of `str` and `bytes` objects without calling the interpreter.
//!
//! Hot file, except for decoding: no allocation, no lock, no GIL, async-signal-safe.

use core::fmt::{self, Write};

use crate::memory::{is_plausible, load};
use crate::version::TextLayout;

/// The bits of the state word: the width of a character, and flags.
const KIND_SHIFT: u32 = 2;
const KIND_MASK: u32 = 7;
const COMPACT: u32 = 1 << 5;
const ASCII: u32 = 1 << 6;
/// No name is longer: such an object is not a string.
const MAX_LENGTH: usize = 1 << 24;

/// The characters of a `str` as the interpreter stores them: one, two or four bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrText<'a> {
    /// The bytes of a character; 0: there is no text.
    pub width: u8,
    /// The bytes of the characters.
    pub bytes: &'a [u8],
}

/// The location of a `str`'s characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Characters {
    /// The bytes of a character.
    pub width: u8,
    /// The length of all characters in bytes.
    pub length: usize,
    /// The offset in the object of the characters; if it is not compact, of the pointer to them.
    pub start: usize,
    /// Whether the characters are in the object.
    pub is_compact: bool,
}

impl TextLayout {
    /// Returns the location of the characters of a `str` with this length and state; `None` for words that no `str`
    /// has.
    pub fn characters(&self, length: usize, state: u32) -> Option<Characters> {
        let width = (state >> KIND_SHIFT) & KIND_MASK;
        let (is_compact, is_ascii) = (state & COMPACT != 0, state & ASCII != 0);
        let start = if is_compact && is_ascii { self.ascii } else { self.compact };
        if length > MAX_LENGTH || !matches!(width, 1 | 2 | 4) {
            return None;
        }
        Some(Characters { width: width as u8, length: length * width as usize, start, is_compact })
    }
}

impl StrText<'_> {
    /// Decodes the text as UTF-8.
    pub fn decode(self) -> String {
        self.characters().collect()
    }
}

impl<'a> StrText<'a> {
    /// Decodes the characters. A lone surrogate, which stands for a byte of a file name that is not UTF-8, becomes
    /// U+FFFD.
    fn characters(self) -> impl Iterator<Item = char> + use<'a> {
        self.bytes.chunks_exact(usize::from(self.width.max(1))).map(|point| match *point {
            [low] => char::from(low),
            [low, high] => char::from_u32(u16::from_le_bytes([low, high]).into()).unwrap_or(LOST),
            [a, b, c, d] => char::from_u32(u32::from_le_bytes([a, b, c, d])).unwrap_or(LOST),
            _ => LOST,
        })
    }
}

/// Writes the text without allocating. Control characters, such as line ends, become U+FFFD.
impl fmt::Display for StrText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |character: char| if character.is_control() { LOST } else { character };
        self.characters().try_for_each(|character| f.write_char(shown(character)))
    }
}

const LOST: char = char::REPLACEMENT_CHARACTER;

/// Returns the characters of a `str`. `None` if there is no valid `str`.
///
/// # Safety
/// `object` is null or a `str` that stays alive.
pub(crate) unsafe fn text<'a>(layout: &TextLayout, object: u64) -> Option<StrText<'a>> {
    if !is_plausible(object) {
        return None;
    }
    // SAFETY: the caller vouches for a live `str`, whose header never changes.
    let (length, state) = unsafe { (load::<usize>(object, layout.length), load::<u32>(object, layout.state)) };
    let characters = layout.characters(length, state)?;
    let data = if characters.is_compact {
        object + characters.start as u64
    } else {
        // SAFETY: as above; a string that is not compact has a pointer there.
        unsafe { load::<u64>(object, characters.start) }
    };
    if data == 0 {
        return None;
    }
    // SAFETY: the data of a live string is `length` characters of that width, and never changes.
    let bytes = unsafe { slice(data, characters.length) };
    Some(StrText { width: characters.width, bytes })
}

/// Returns the contents of a `bytes` object. `None` if there is no valid `bytes`.
///
/// # Safety
/// `object` is null or a `bytes` that stays alive.
pub(crate) unsafe fn bytes<'a>(layout: &TextLayout, object: u64) -> Option<&'a [u8]> {
    if !is_plausible(object) {
        return None;
    }
    // SAFETY: the caller vouches for a live `bytes`, which never changes.
    unsafe {
        let length = load::<usize>(object, layout.bytes_length);
        (length <= MAX_LENGTH).then(|| slice(object + layout.bytes as u64, length))
    }
}

/// # Safety
/// There are `length` bytes at `address`, for as long as the slice is used.
unsafe fn slice<'a>(address: u64, length: usize) -> &'a [u8] {
    // SAFETY: passed on to the caller.
    unsafe { core::slice::from_raw_parts(core::ptr::with_exposed_provenance(address as usize), length) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VersionLayout;

    /// Returns a compact string of that kind, as an interpreter with this layout stores it.
    fn object(layout: &TextLayout, state: u32, length: usize, data: &[u8]) -> Vec<u64> {
        let mut bytes = vec![0; 256];
        bytes[layout.length..layout.length + 8].copy_from_slice(&length.to_le_bytes());
        bytes[layout.state..layout.state + 4].copy_from_slice(&state.to_le_bytes());
        let start = if state & ASCII == 0 { layout.compact } else { layout.ascii };
        bytes[start..start + data.len()].copy_from_slice(data);
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    }

    fn read(layout: &TextLayout, state: u32, length: usize, data: &[u8]) -> Option<String> {
        let words = object(layout, state, length, data);
        // SAFETY: the words are a string of this layout.
        unsafe { text(layout, words.as_ptr() as u64) }.map(StrText::decode)
    }

    #[test]
    fn every_width_is_decoded() {
        for minor in [10, 15] {
            let layout = &VersionLayout::of_minor(minor).unwrap().text;
            let kind = |width: u32| (width << KIND_SHIFT) | COMPACT;
            assert_eq!(read(layout, kind(1) | ASCII, 3, b"abc").as_deref(), Some("abc"));
            assert_eq!(read(layout, kind(1), 2, &[0xe9, 0x61]).as_deref(), Some("\u{e9}a"));
            assert_eq!(read(layout, kind(2), 2, &[0x03, 0x04, 0x80, 0xdc]).as_deref(), Some("\u{403}\u{fffd}"));
            assert_eq!(read(layout, kind(4), 1, &[0x00, 0xf6, 0x01, 0x00]).as_deref(), Some("\u{1f600}"));
            assert_eq!(read(layout, kind(0), 1, b"a"), None);
            assert_eq!(read(layout, kind(1) | ASCII, usize::MAX, b"a"), None);
        }
    }
}
