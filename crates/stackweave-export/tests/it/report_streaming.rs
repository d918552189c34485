//! The memory for a report depends on distinct names and open tiles, not on the number of events.

use stackweave_export::{ExportOptions, Format, export};
use stackweave_recording::Recording;
use stackweave_tapes::{Tape, span};
use stackweave_testkit::counting_allocator::peak_bytes;
use stackweave_testkit::folder::Folder;

/// Records calls four levels deep, with a counter, an instant, and a block that replaces an older one.
fn recording(rounds: u64) -> Recording {
    let mut tape = Tape::new();
    let function = tape.python("f", "f.py", 1);
    let names = ["a", "b", "c", "d"].map(span);
    tape.thread(1, 101, "main");
    for round in 0..rounds {
        let at = |step: u64| (1, round * 20_000 + step);
        names.iter().zip(0..).for_each(|(name, step)| tape.begin(at(step), *name));
        tape.counter(at(4), span("n"), f64::from(u8::try_from(round % 100).unwrap_or(0)));
        tape.instant(at(5), span("now"), &[]);
        tape.allocate(at(6), (0x1000 + round % 500 * 16, 10), &[Tape::at(function, 3)]);
        (7..11).for_each(|step| tape.end(at(step)));
        if round % 400 == 0 {
            tape.flush(1);
        }
    }
    tape.recording()
}

#[test]
fn four_times_the_events_need_the_same_memory() {
    let recordings = [recording(5_000), recording(20_000)];
    let folder = Folder::new();
    let peaks = recordings.each_ref().map(|recording| {
        let options = ExportOptions { overwrite: true, ..ExportOptions::default() };
        let path = folder.file("x.html");
        peak_bytes(|| drop(export(recording, Format::Report, &path, &options, (None, &mut |_| {})).unwrap()))
    });
    println!("{peaks:?} bytes");
    assert!(peaks[1] <= peaks[0] + peaks[0] / 2, "{peaks:?} bytes");
}
