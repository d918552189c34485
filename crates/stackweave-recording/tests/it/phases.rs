//! Warm pushes and pops of phases do not allocate.

use std::sync::Arc;

use stackweave_core::NoNames;
use stackweave_recording::timing::{Outcome, Timing};
use stackweave_recording::{Recorder, RecorderOptions};
use stackweave_store::{StackTable, label};
use stackweave_testkit::counting_allocator::requests;
use stackweave_testkit::folder::Folder;

static STACKS: StackTable = StackTable::new();

/// Fills several buffers.
const MANY: usize = 100_000;

fn record_all(timing: &Timing, depth: usize) {
    let work = label("work", "phases.py", 1).unwrap();
    let outer = timing.push(work);
    timing.push_code(work, 12, 1);
    (0..depth).for_each(|_| _ = timing.push(work));
    (0..depth).for_each(|_| assert!(timing.pop()));
    timing.push_with(work, b"{}");
    timing.pop_with(Outcome::Failed, b"{}");
    timing.push_run(work, b"");
    timing.close(outer, Outcome::Done, b"");
    timing.pop();
}

#[test]
fn warm_pushes_and_pops_do_not_allocate() {
    let folder = Folder::new();
    let [first, second] = ["a.swv", "b.swv"].map(|name| {
        let recorder = Recorder::start(RecorderOptions::new(folder.file(name)), &STACKS, Arc::new(NoNames)).unwrap();
        Timing::new(recorder).unwrap()
    });
    let depth = 100;
    record_all(&first, depth);
    record_all(&second, depth);
    let before = requests();
    for _ in 0..MANY / depth {
        record_all(&first, depth);
        record_all(&second, depth);
        assert_eq!((first.depth(), second.current()), (0, None));
    }
    assert_eq!(requests() - before, 0);
}
