//! Pictures of memory over time, read by an XML parser.

use stackweave_core::EventKind;
use stackweave_export::{ExportError, ExportOptions, Format, export};
use stackweave_profile::AggregateOptions;
use stackweave_recording::Recording;
use stackweave_recording::events::{self, Allocator};
use stackweave_tapes::{Tape, recording_of, span};
use stackweave_testkit::folder::Folder;

use crate::common::examples::{MAIN_THREAD, nasty_names};
use crate::common::exported_text;
use crate::common::memory::{memory, memory_of, memory_tape};
use crate::svg::{of_class, parse, shown, title};

fn drawn(recording: &Recording) -> String {
    exported_text(recording, Format::MemoryCurve, &ExportOptions::default())
}

fn texts(picture: &str, class: &str) -> Vec<String> {
    let document = parse(picture);
    of_class(&document, class).iter().filter_map(roxmltree::Node::text).map(str::to_owned).collect()
}

#[test]
fn the_peak_and_the_end_are_those_of_the_recording() {
    let mut tape = memory();
    tape.counter((MAIN_THREAD, 3500), span("memory.rss"), 65536.0);
    let picture = drawn(&tape.recording());
    assert_eq!(texts(&picture, "peak"), ["10.9 KiB at 3.00 us"]);
    let notes = texts(&picture, "note");
    let about = "peak 10.9 KiB at 3.00 us; 5.98 KiB at the end; resident up to 64.0 KiB; device 1 up to 768 B";
    assert!(notes.contains(&about.to_owned()), "{notes:?}");
    assert!(
        ["allocated", "resident", "devices", "64.0 KiB", "2.00 us"].iter().all(|word| notes.contains(&(*word).into()))
    );
    let document = parse(&picture);
    for class in ["heap", "rss", "device", "area"] {
        assert!(!of_class(&document, class).is_empty(), "{class}");
    }
    let bands: Vec<Vec<String>> = of_class(&document, "tag").into_iter().map(title).collect();
    assert_eq!(bands, [["loading", "1.50 us to 4.50 us"]]);
}

#[test]
fn a_snapshot_has_a_more_exact_peak_than_the_line() {
    let mut tape = memory_tape(&[("memory.mode", "aggregate")]);
    for (ticks, bytes) in [(1_000_000, 1e6), (2_000_000, 3e6), (3_000_000, 2e6)] {
        tape.counter((MAIN_THREAD, ticks), span("memory.heap"), bytes);
    }
    let figures = [10, 20, 1, 2_000_000, 3, 4 << 20, 0, 0, 9, 0, 0];
    let total = [&[1, EventKind::OWN_DEVICE.cast_unsigned(), 1_500_000][..], &figures].concat();
    tape.event((MAIN_THREAD, 4_000_000), &events::MEMORY_TOTAL, &total);
    let host = [&[1, 0, 10][..], &[7; 11]].concat();
    tape.event((MAIN_THREAD, 4_000_001), &events::MEMORY_TOTAL, &host);
    let recording = tape.recording();
    assert_eq!(texts(&drawn(&recording), "peak"), ["4.00 MiB at 2.50 ms"]);
    let part = AggregateOptions { range: Some(0..1_500_000), ..AggregateOptions::default() };
    let options = ExportOptions { part, ..ExportOptions::default() };
    assert_eq!(texts(&exported_text(&recording, Format::MemoryCurve, &options), "peak"), ["977 KiB at 1.00 ms"]);
}

#[test]
fn each_process_has_a_panel() {
    let picture = drawn(&recording_of(vec![memory(), memory_of(7)]));
    let document = parse(&picture);
    assert_eq!(of_class(&document, "panel").len(), 2);
    assert!(picture.contains("python3 train.py (7)"));
}

#[test]
fn names_are_escaped() {
    let mut tape = memory_tape(&[]);
    let mut ticks = 0;
    for name in nasty_names() {
        ticks += 1000;
        tape.tag((MAIN_THREAD, ticks), Some(&name));
        tape.allocate_by((MAIN_THREAD, ticks + 1), Allocator::Malloc, (0x1000, 10), &[]);
    }
    let picture = drawn(&tape.recording());
    let document = parse(&picture);
    let bands: Vec<String> = of_class(&document, "tag").into_iter().map(|band| title(band)[0].clone()).collect();
    assert_eq!(bands, nasty_names().iter().map(|name| shown(name)).collect::<Vec<_>>());
    assert!(document.descendants().all(|node| !node.has_tag_name("script")));
}

#[test]
fn a_recording_without_memory_is_refused() {
    let mut tape = Tape::new();
    tape.begin((1, 10), span("a"));
    let folder = Folder::new();
    let (path, options) = (folder.file("out.memory.svg"), ExportOptions::default());
    let error = export(&tape.recording(), Format::MemoryCurve, &path, &options, (None, &mut |_| {})).unwrap_err();
    assert!(matches!(&error, ExportError::Unsupported(why) if why.contains("has no memory")), "{error}");
}
