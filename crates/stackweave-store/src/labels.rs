//! Names that somebody gives to what happens, and not places in code: the spans, instants and counters of a recording.
//!
//! Hot file, but for telling what a label says: no lock, no allocation, async-signal-safe.

use stackweave_core::{BlobId, Position, RawFrame, RawFrameKind, SourceLocation};

use crate::blob_table::BlobTable;

static LABELS: BlobTable = BlobTable::new();

/// So many labels there are at most, and so many bytes of their text: a name that has a number in it must not fill the memory of
/// a process that runs for long.
pub const MOST_LABELS: u32 = 1 << 20;
const MOST_BYTES: u64 = 64 << 20;
/// What stands for every name beyond.
pub const OTHER_NAMES: &str = "(other names: there are too many)";

/// The frame that stands for this name; `filename` may be empty and `line` 0 where there is no such place. The same for
/// equal ones, as long as the process lives. Once there are [`MOST_LABELS`], or 64 MiB of their text, [`OTHER_NAMES`] stands for each new
/// one. `None` if there is no memory for a new one.
pub fn label(name: &str, filename: &str, line: u32) -> Option<RawFrame> {
    let length = u32::try_from(name.len()).ok()?;
    let parts: [&[u8]; 4] = [&line.to_le_bytes(), &length.to_le_bytes(), name.as_bytes(), filename.as_bytes()];
    let known = LABELS.find(&parts);
    let id = match known {
        None if LABELS.len() >= MOST_LABELS || LABELS.used_bytes() >= MOST_BYTES => other_names(),
        None => LABELS.intern(&parts),
        known => known,
    };
    id.map(RawFrame::label)
}

/// The one label that is made however many there are.
#[cold]
fn other_names() -> Option<BlobId> {
    let length = u32::try_from(OTHER_NAMES.len()).ok()?;
    LABELS.intern(&[&[0; 4], &length.to_le_bytes(), OTHER_NAMES.as_bytes()])
}

/// What a label says; `None` for other frames, and for a label that was never made here.
pub fn locate_label(frame: RawFrame) -> Option<SourceLocation> {
    let RawFrameKind::Label(id) = frame.kind() else { return None };
    let (line, name, filename) = parts(id)?;
    let position = Position { line: (line != 0).then_some(line), ..Position::default() };
    Some(SourceLocation {
        name: name.into(),
        qualname: None,
        filename: filename.into(),
        first_line: position.line,
        position,
    })
}

fn parts(id: BlobId) -> Option<(u32, &'static str, &'static str)> {
    let (line, rest) = LABELS.get(id)?.split_first_chunk()?;
    let (length, text) = rest.split_first_chunk()?;
    let (name, filename) = text.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((u32::from_le_bytes(*line), str::from_utf8(name).ok()?, str::from_utf8(filename).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_says_what_it_was_made_of() {
        let plain = label("load batch", "", 0).unwrap();
        let placed = label("load batch", "train.py", 12).unwrap();
        assert_ne!(plain, placed);
        assert_eq!(label("load batch", "train.py", 12), Some(placed));
        let said = locate_label(placed).unwrap();
        assert_eq!((&*said.name, &*said.filename, said.position.line), ("load batch", "train.py", Some(12)));
        assert_eq!(locate_label(plain).unwrap().position.line, None);
    }

    #[test]
    fn other_frames_are_no_labels() {
        let never = RawFrame::label(BlobId::new(u32::MAX).unwrap());
        assert_eq!((locate_label(never), locate_label(RawFrame::script(1, 1))), (None, None));
    }
}
