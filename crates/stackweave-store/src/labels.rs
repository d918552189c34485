//! Labels: names that a user gives to spans, instants and counters, which are not locations in code.
//!
//! Hot file, except for the functions that describe a label: no lock, no allocation, async-signal-safe.

use stackweave_core::{BlobId, Position, RawFrame, RawFrameKind, SourceLocation};

use crate::blob_table::BlobTable;

static LABELS: BlobTable = BlobTable::new();

/// The maximum number of labels and of bytes of their text: names that contain numbers must not fill the memory of
/// a long-running process.
pub const MOST_LABELS: u32 = 1 << 20;
const MOST_BYTES: u64 = 64 << 20;
/// The name that replaces every name beyond these limits.
pub const OTHER_NAMES: &str = "(other names: there are too many)";

/// Returns the frame for this name; `filename` may be empty and `line` 0 if there is no location. Equal arguments
/// return the same frame for the life of the process. Beyond [`MOST_LABELS`] labels, or 64 MiB of their text,
/// every new name becomes [`OTHER_NAMES`]. `None` if there is no memory for a new one.
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

/// Returns the label [`OTHER_NAMES`], which is interned in spite of the limits.
#[cold]
fn other_names() -> Option<BlobId> {
    let length = u32::try_from(OTHER_NAMES.len()).ok()?;
    LABELS.intern(&[&[0; 4], &length.to_le_bytes(), OTHER_NAMES.as_bytes()])
}

/// Describes a label; `None` for other frames, and for a label that this process has not created.
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
    fn a_label_is_described_by_its_arguments() {
        let plain = label("load batch", "", 0).unwrap();
        let placed = label("load batch", "train.py", 12).unwrap();
        assert_ne!(plain, placed);
        assert_eq!(label("load batch", "train.py", 12), Some(placed));
        let location = locate_label(placed).unwrap();
        assert_eq!(
            (&*location.name, &*location.filename, location.position.line),
            ("load batch", "train.py", Some(12))
        );
        assert_eq!(locate_label(plain).unwrap().position.line, None);
    }

    #[test]
    fn other_frames_are_not_labels() {
        let never = RawFrame::label(BlobId::new(u32::MAX).unwrap());
        assert_eq!((locate_label(never), locate_label(RawFrame::script(1, 1))), (None, None));
    }
}
