//! Exports stop at their limits, leave no files behind, and give advice.

use stackweave_export::{ExportError, ExportOptions, Format, SizeLimit, TooLarge, export, write};
use stackweave_recording::Recording;
use stackweave_tapes::{Tape, native, span};
use stackweave_testkit::folder::Folder;

use crate::common::memory::memory;

fn limited(limit: SizeLimit) -> ExportOptions<'static> {
    ExportOptions { max_size: limit, ..ExportOptions::default() }
}

/// Records spans, samples and blocks in many blocks of the file.
fn large() -> Recording {
    let mut tape = Tape::new();
    for round in 0..8_000 {
        let at = |step: u64| (1, round * 20 + step);
        tape.begin(at(0), span("a"));
        tape.sample(at(1), &[native(0x1000 + round)], 1);
        tape.allocate(at(2), (0x1000 + round * 64, 10), &[native(0x2000)]);
        tape.end(at(3));
        if round % 400 == 0 {
            tape.flush(1);
        }
    }
    tape.recording()
}

#[test]
fn every_format_stops_at_its_limit_and_leaves_no_file() {
    let folder = Folder::new();
    let recording = memory().recording();
    for format in Format::all() {
        for name in ["out", "out.gz"] {
            let path = folder.file(name);
            let done = export(&recording, format, &path, &limited(SizeLimit::Bytes(10)), (None, &mut |_| {}));
            let Err(ExportError::TooLarge(TooLarge { limit: 10, .. })) = done else { panic!("{format}: {done:?}") };
            assert!(folder.names().is_empty(), "{format} left {:?}", folder.names());
        }
        let whole = Folder::new();
        export(&recording, format, &whole.file("out"), &limited(SizeLimit::None), (None, &mut |_| {})).unwrap();
    }
}

#[test]
fn an_existing_file_is_kept() {
    let folder = Folder::new();
    let path = folder.write("out.json", b"before");
    let options = ExportOptions { overwrite: true, ..limited(SizeLimit::Bytes(1000)) };
    export(&large(), Format::Chrome, &path, &options, (None, &mut |_| {})).unwrap_err();
    assert_eq!((folder.names(), std::fs::read(&path).unwrap()), (vec!["out.json".to_owned()], b"before".to_vec()));
}

#[test]
fn the_limit_is_for_the_size_before_compression() {
    let (folder, recording) = (Folder::new(), large());
    let plain = folder.file("out.json");
    let bytes =
        export(&recording, Format::Chrome, &plain, &limited(SizeLimit::None), (None, &mut |_| {})).unwrap().bytes;
    for name in ["fits.json", "fits.json.gz"] {
        export(&recording, Format::Chrome, &folder.file(name), &limited(SizeLimit::Bytes(bytes)), (None, &mut |_| {}))
            .unwrap();
    }
    for name in ["not.json", "not.json.gz"] {
        let options = limited(SizeLimit::Bytes(bytes - 1));
        export(&recording, Format::Chrome, &folder.file(name), &options, (None, &mut |_| {})).unwrap_err();
    }
}

/// A format that is written while the recording is read knows its progress.
#[test]
fn the_error_has_the_share_of_the_recording_that_was_exported() {
    let recording = large();
    let mut bytes = Vec::new();
    write(&recording, Format::Json, &mut bytes, &limited(SizeLimit::None), (None, &mut |_| {})).unwrap();
    let limit = bytes.len() as u64 / 2;
    let mut half = Vec::new();
    let error =
        write(&recording, Format::Json, &mut half, &limited(SizeLimit::Bytes(limit)), (None, &mut |_| {})).unwrap_err();
    let ExportError::TooLarge(TooLarge { share: Some(share), .. }) = error else { panic!("{error:?}") };
    assert!((0.3..0.7).contains(&share), "{share}");
    assert!(half.len() as u64 <= limit);
    let message = error.to_string();
    assert!(
        message.starts_with("the json export is larger than its limit of ")
            && message.contains("% of the events reached it (all of them"),
        "{message}"
    );
    assert!(message.ends_with("; parquet contains the same in fewer bytes"), "{message}");
}

/// Formats that list whole stacks need space quadratic in the depth: the limit is for them.
#[test]
fn a_deep_recursion_is_stopped_by_the_limit() {
    let mut tape = Tape::new();
    (0..20_000).for_each(|at| tape.begin((1, at), span("a function that calls itself")));
    let folder = Folder::new();
    let options = limited(SizeLimit::Bytes(32 << 20));
    let error = export(&tape.recording(), Format::Folded, &folder.file("out.folded"), &options, (None, &mut |_| {}))
        .unwrap_err();
    let expected = "the folded export is larger than its limit of 32.0 MiB; pprof contains the same in fewer bytes";
    assert_eq!((error.to_string().as_str(), folder.names()), (expected, vec![]));
}
