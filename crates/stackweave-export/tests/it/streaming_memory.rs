//! The memory for exports depends on distinct names and stacks, not on the number of events.

use stackweave_export::{ExportOptions, Format, export};
use stackweave_recording::Recording;
use stackweave_tapes::{Tape, native, span};
use stackweave_testkit::counting_allocator::peak_bytes;
use stackweave_testkit::folder::Folder;

const ROUNDS_IN_A_BLOCK: u64 = 400;

/// Records two threads with calls three levels deep, and in each a sample, an instant, and a block that is freed.
fn recording(blocks: u64) -> Recording {
    let mut tape = Tape::new();
    let function = tape.python("f", "f.py", 1);
    let names = ["a", "b", "c"].map(span);
    for round in 0..blocks * ROUNDS_IN_A_BLOCK {
        for thread in [1, 2] {
            let at = |step: u64| (thread, round * 20 + step);
            names.iter().zip(0..).for_each(|(name, step)| tape.begin(at(step), *name));
            tape.sample(at(4), &[Tape::at(function, 2), native(0x1000)], 1);
            tape.instant(at(5), span("d"), &[]);
            tape.allocate(at(6), (0x1000, 10), &[Tape::at(function, 3)]);
            tape.free(at(7), 0x1000);
            (8..11).for_each(|step| tape.end(at(step)));
            if round % ROUNDS_IN_A_BLOCK == ROUNDS_IN_A_BLOCK - 1 {
                tape.flush(thread);
            }
        }
    }
    tape.recording()
}

#[test]
fn ten_times_the_events_need_the_same_memory() {
    let recordings = [recording(4), recording(40)];
    let folder = Folder::new();
    for format in [Format::Pstats, Format::Folded, Format::Pprof, Format::Speedscope, Format::Json] {
        let peaks = recordings.each_ref().map(|recording| {
            let path = folder.file(format.name());
            let options = ExportOptions { overwrite: true, ..ExportOptions::default() };
            peak_bytes(|| drop(export(recording, format, &path, &options, (None, &mut |_| {})).unwrap()))
        });
        println!("{format}: {peaks:?} bytes");
        // The positions of the blocks in the file are kept too.
        assert!(peaks[1] <= peaks[0] + peaks[0] / 4, "{format}: {peaks:?} bytes");
    }
}
