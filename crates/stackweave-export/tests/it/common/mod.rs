//! Shared parts of the tests: made-up recordings, and the programs that read exports.

pub mod cuda;
pub mod devices;
pub mod examples;
pub mod json_lines;
pub mod memory;
pub mod readers;
pub mod report;
pub mod timelines;
pub mod traced;
pub mod trees;

use std::path::Path;

use stackweave_export::{ExportOptions, Format, export};
use stackweave_recording::Recording;
use stackweave_testkit::folder::Folder;

/// Returns the bytes of an export.
pub fn exported(recording: &Recording, format: Format, options: &ExportOptions<'_>) -> Vec<u8> {
    let folder = Folder::new();
    let path = folder.file("out");
    let done = export(recording, format, &path, options, (None, &mut |_| {})).unwrap();
    let bytes = std::fs::read(path).unwrap();
    assert_eq!((done.bytes, done.missing), (bytes.len() as u64, Vec::new()));
    bytes
}

/// Returns an export as text.
pub fn exported_text(recording: &Recording, format: Format, options: &ExportOptions<'_>) -> String {
    String::from_utf8(exported(recording, format, options)).unwrap()
}

/// Compares text with a file in `tests/golden`, or writes that file if `STACKWEAVE_BLESS` is set.
pub fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("STACKWEAVE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{name} differs (STACKWEAVE_BLESS=1 rewrites it):\n{text}");
}
