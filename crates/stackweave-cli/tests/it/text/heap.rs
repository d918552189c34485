//! Memory as text.

use stackweave_cli::text::{HeapOptions, HeapView, write_heap};
use stackweave_core::RawFrame;
use stackweave_heap::LedgerOptions;
use stackweave_profile::memory::{MemoryQuery, MemoryReport, read_report};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::Allocator;
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::Tape;
use stackweave_tapes::memory::{MemoryStep, MemoryTape, header};

use super::assert_golden;

const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;

/// Records a program that reads a file in chunks, grows a table, and trains with a batch that is never freed.
fn tape(start: &ProcessStart, options: LedgerOptions) -> MemoryTape {
    let mut tape = MemoryTape::with(start, options);
    tape.tape.thread(1, 4711, "MainThread");
    tape.tape.thread(2, 4712, "loader");
    let main = Tape::at(tape.tape.python("main", "/srv/app/main.py", 10), 12);
    let load = Tape::at(tape.tape.python("Loader.read", "/srv/app/loader.py", 20), 27);
    let train = Tape::at(tape.tape.python("Trainer.train", "/srv/app/trainer.py", 33), 40);
    let step = Tape::at(tape.tape.python("Trainer.step", "/srv/app/trainer.py", 77), 80);
    let block =
        |address, size, stack: &[RawFrame], by| MemoryStep::Allocate { address, size, stack: stack.to_vec(), by };
    tape.step(1, 10 * MS, &block(0x10_0000, 24 * MIB, &[train, main], Allocator::Mmap));
    for number in 0..40 {
        let at = 100 + number * 2;
        tape.step(2, at * MS, &block(0x1000, 900, &[load, main], Allocator::Malloc));
        tape.step(2, (at + 1) * MS, &MemoryStep::Free { address: 0x1000 });
        let piece = block(0x2000_0000 + number * MIB, 200_000, &[step, train, main], Allocator::Realloc);
        tape.step(1, at * MS, &piece);
    }
    tape.step(1, 500 * MS, &MemoryStep::Tag { name: Some("step \u{1b}3") });
    tape.step(1, 510 * MS, &block(0x9000, 3 * MIB, &[step, train, main], Allocator::Calloc));
    for number in 0..39 {
        tape.step(1, (600 + number) * MS, &MemoryStep::Free { address: 0x2000_0000 + number * MIB });
    }
    tape.step(1, 900 * MS, &MemoryStep::Unmap { address: 0x10_0000, size: 24 * MIB });
    tape.step(1, 990 * MS, &MemoryStep::Free { address: 0x77 });
    for (ms, heap, rss) in
        [(0, 0, 9), (20, 24, 14), (200, 31, 30), (520, 34, 38), (700, 27, 37), (910, 3, 12), (995, 3, 12)]
    {
        tape.curve(ms * MS, f64::from(heap) * 1_048_576.0, f64::from(rss) * 1_048_576.0);
    }
    tape.snapshot(1, false);
    tape
}

fn history() -> [ProcessRecording; 1] {
    let start = header(&[("recorder", "memory"), ("memory.mode", "history")]);
    [tape(&start, LedgerOptions::default()).process()]
}

fn report(processes: &[ProcessRecording], query: &MemoryQuery) -> MemoryReport {
    read_report(processes, query, None, &mut |_| {}).unwrap()
}

fn text(report: &MemoryReport, options: &HeapOptions) -> String {
    let mut text = Vec::new();
    write_heap(&mut text, report, options).unwrap();
    String::from_utf8(text).unwrap()
}

fn view(view: HeapView) -> String {
    text(&report(&history(), &MemoryQuery::default()), &HeapOptions { view, limit: 3, ..HeapOptions::default() })
}

const VIEWS: [(&str, HeapView); 8] = [
    ("summary", HeapView::Summary),
    ("peak", HeapView::Peak),
    ("leaks", HeapView::Leaks),
    ("temporary", HeapView::Temporary),
    ("sizes", HeapView::Sizes),
    ("threads", HeapView::Threads),
    ("tags", HeapView::Tags),
    ("time", HeapView::Time),
];

#[test]
fn every_view_equals_its_expected_file() {
    for (name, of) in VIEWS {
        assert_golden(&format!("heap-{name}.txt"), &view(of));
    }
}

#[test]
fn a_time_range_is_labelled_as_such() {
    let query = MemoryQuery { range: Some(550 * MS..950 * MS), ..MemoryQuery::default() };
    let options = HeapOptions { limit: 3, ..HeapOptions::default() };
    assert_golden("heap-range.txt", &text(&report(&history(), &query), &options));
}

#[test]
fn estimates_are_labelled_everywhere() {
    let start = header(&[("recorder", "memory"), ("memory.mode", "sampled"), ("memory.sample_every", "524288")]);
    let options = LedgerOptions { temporary: 1, sample_every: Some(524_288) };
    let report = report(&[tape(&start, options).process()], &MemoryQuery::default());
    for (_, view) in VIEWS {
        let text = text(&report, &HeapOptions { view, ..HeapOptions::default() });
        assert!(text.lines().next().unwrap().contains("estimated"), "{text}");
    }
    assert_golden("heap-sampled.txt", &text(&report, &HeapOptions { limit: 3, ..HeapOptions::default() }));
}

#[test]
fn peaks_of_several_processes_are_added_with_a_note() {
    let start = |pid| ProcessStart { pid, ..header(&[("recorder", "memory"), ("memory.mode", "aggregate")]) };
    let parent = tape(&start(7), LedgerOptions::default()).process();
    let mut child = MemoryTape::with(&start(8), LedgerOptions::default());
    let work = Tape::at(child.tape.python("work", "/srv/app/child.py", 1), 3);
    child.step(
        1,
        40 * MS,
        &MemoryStep::Allocate { address: 0x10, size: 5 * MIB, stack: vec![work], by: Allocator::Malloc },
    );
    child.snapshot(1, false);
    let report = report(&[parent, child.process()], &MemoryQuery::default());
    assert_golden("heap-processes.txt", &text(&report, &HeapOptions { limit: 3, ..HeapOptions::default() }));
}

#[test]
fn lines_fit_the_width_and_colours_do_not_change_the_text() {
    let report = report(&history(), &MemoryQuery::default());
    let plain = text(&report, &HeapOptions { width: Some(80), ..HeapOptions::default() });
    assert!(plain.lines().all(|line| line.chars().count() <= 80), "{plain}");
    let coloured = text(&report, &HeapOptions { width: Some(80), colour: true, ..HeapOptions::default() });
    assert!(coloured.contains("\u{1b}[") && !plain.contains('\u{1b}'));
    let mut without = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        without.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    without.push_str(rest);
    let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(trimmed(&without), trimmed(&plain));
}

#[test]
fn an_empty_report_is_written() {
    let report = report(&[MemoryTape::new().process()], &MemoryQuery::default());
    assert!(report.is_empty());
    for (_, view) in VIEWS {
        assert!(!text(&report, &HeapOptions { view, ..HeapOptions::default() }).is_empty());
    }
}
