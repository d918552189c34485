//! Every format reports what could not be read, once.

use stackweave_export::{ExportOptions, Format, export};
use stackweave_tapes::recording;
use stackweave_testkit::folder::Folder;

use crate::common::examples::random;

#[test]
fn a_damaged_recording_is_reported_once() {
    let mut bytes = random(41, 3000).bytes();
    let position = bytes.len() - 2000;
    bytes[position] ^= 0x55;
    let recording = recording(bytes);
    let folder = Folder::new();
    let missing = |format: Format| {
        let path = folder.file(format.name());
        export(&recording, format, &path, &ExportOptions::default(), (None, &mut |_| {})).unwrap().missing
    };
    let expected = missing(Format::Folded);
    assert!(expected.len() == 1 && expected[0].contains("damaged"), "{expected:?}");
    for format in [Format::Pstats, Format::Pprof, Format::Speedscope, Format::Json, Format::Report] {
        assert_eq!(missing(format), expected, "{format}");
    }
}
