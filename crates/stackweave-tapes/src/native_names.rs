//! Names of native frames in a recording, as resolved recordings have them.

use std::collections::BTreeMap;

use stackweave_core::FrameKind;
use stackweave_recording::file::{BlockHeader, BlockKind, RecordedFrame, write_block};

use super::recording;

/// A function of a native frame.
#[derive(Clone, Debug)]
pub struct NativeName {
    /// Its name.
    pub name: String,
    /// Its source file.
    pub filename: String,
    /// Its line.
    pub line: u32,
    /// Whether it was inlined into the next function.
    pub is_inlined: bool,
}

const STRINGS: u8 = 2;
const NAMES: u8 = 5;
const HAS_LINE: u8 = 1 << 2;
const IS_INLINED: u8 = 1 << 7;

/// Adds the names of native frames, by address, to a section without an end, as
/// `docs/reference/format-recording.md` describes.
pub(super) fn write_native_names(names: &BTreeMap<u64, Vec<NativeName>>, out: &mut Vec<u8>) {
    if names.is_empty() {
        return;
    }
    let so_far = recording(out.clone());
    let dictionary = so_far.processes()[0].dictionary();
    let first_string = dictionary.string_count() as u64 + 1;
    let mut strings: Vec<&str> = Vec::new();
    let mut string = |text| {
        strings.push(text);
        first_string + strings.len() as u64 - 1
    };
    let mut name_bytes = Vec::new();
    let mut count = 0;
    for (number, frame) in dictionary.frames() {
        let RecordedFrame::Native { address, .. } = frame else { continue };
        let Some(chain) = names.get(&address.address()) else { continue };
        count += 1;
        put(&mut name_bytes, number.into());
        put(&mut name_bytes, chain.len() as u64);
        for name in chain {
            name_bytes.extend([FrameKind::Native as u8, HAS_LINE | if name.is_inlined { IS_INLINED } else { 0 }]);
            put(&mut name_bytes, string(&name.name));
            put(&mut name_bytes, string(&name.filename));
            put(&mut name_bytes, name.line.into());
        }
    }
    let mut string_run = Vec::new();
    put(&mut string_run, first_string);
    put(&mut string_run, strings.len() as u64);
    for text in strings {
        put(&mut string_run, text.len() as u64);
        string_run.extend(text.as_bytes());
    }
    let mut name_run = Vec::new();
    put(&mut name_run, count);
    name_run.extend(name_bytes);
    let mut payload = Vec::new();
    for (tag, run) in [(STRINGS, string_run), (NAMES, name_run)] {
        payload.push(tag);
        put(&mut payload, run.len() as u64);
        payload.extend(run);
    }
    let section = BlockHeader::parse(out.first_chunk().unwrap()).unwrap().section;
    write_block(BlockKind::Definitions, section, &payload, out).unwrap();
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
