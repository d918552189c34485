//! The memory for aggregation depends on the tree, open spans and live blocks, not on the number of events.

use stackweave_profile::{AggregateOptions, Measure};
use stackweave_recording::ProcessRecording;
use stackweave_tapes::{Tape, span};
use stackweave_testkit::counting_allocator::peak_bytes;

use crate::common::recording::profile;

const IN_A_BLOCK: u64 = 4_000;

/// Records calls three levels deep, with a sample and a block that is freed in each.
fn recording(blocks: u64) -> ProcessRecording {
    let mut tape = Tape::new();
    let function = tape.python("f", "f.py", 1);
    let names = ["a", "b", "c"].map(span);
    for block in 0..blocks {
        for round in 0..IN_A_BLOCK / 10 {
            let time = (block * IN_A_BLOCK + round * 10) * 7;
            names.iter().zip(0..).for_each(|(name, step)| tape.begin((1, time + step), *name));
            tape.sample((1, time + 4), &[Tape::at(function, 2)], 1);
            tape.allocate((1, time + 5), (0x1000 + round, 10), &[Tape::at(function, 3)]);
            tape.free((1, time + 6), 0x1000 + round);
            (7..10).for_each(|step| tape.end((1, time + step)));
        }
        tape.flush(1);
    }
    tape.process()
}

#[test]
fn ten_times_the_events_need_the_same_memory() {
    let recordings = [recording(5), recording(50)];
    for measure in Measure::ALL {
        let options = AggregateOptions { measure: Some(measure), ..AggregateOptions::default() };
        let peaks = recordings.each_ref().map(|process| {
            let process = std::slice::from_ref(process);
            let mut total = 0;
            let peak = peak_bytes(|| total = profile(process, &options).total());
            assert_eq!(total == 0, measure == Measure::LiveBytes, "{measure}");
            peak
        });
        println!("{measure}: {peaks:?} bytes");
        assert!(peaks[1] <= peaks[0] + peaks[0] / 4, "{measure}: {peaks:?} bytes");
        assert!(peaks[0] >= 8 * 4_000, "{measure}: {peaks:?} bytes can't hold a block");
    }
}
