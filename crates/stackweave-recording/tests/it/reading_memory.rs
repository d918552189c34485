//! Reading needs the memory of one block for each thread, however many blocks there are.

use std::ops::ControlFlow;

use stackweave_recording::{Recording, merge};
use stackweave_testkit::counting_allocator::peak_bytes;
use stackweave_testkit::folder::Folder;

use crate::recording_builder::RecordingBuilder;

const THREADS: u32 = 4;
const IN_A_BLOCK: u64 = 2_000;

fn recording(blocks: u64) -> Vec<u8> {
    let mut builder = RecordingBuilder::new(7, 0);
    for block in 0..blocks {
        // All threads record at the same time, so a block of each is needed.
        let (round, thread) = (block / u64::from(THREADS), block % u64::from(THREADS));
        let ticks = |step: u64| (round * IN_A_BLOCK + step) * 16 + thread;
        let value = |step: u64| (block + step).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let steps: Vec<(u64, u64)> = (0..IN_A_BLOCK).map(|step| (ticks(step), value(step))).collect();
        let thread = 1 + u32::try_from(thread).unwrap();
        builder.steps(thread, &steps);
        builder.blocks.clear();
    }
    builder.end().bytes
}

/// Returns the peak memory of opening and visiting, of visiting in time order, and of merging.
fn peaks(blocks: u64) -> [usize; 3] {
    let folder = Folder::new();
    let path = folder.write("large.swv", &recording(blocks));
    let mut seen = 0;
    let visit = peak_bytes(|| {
        let recording = Recording::open(&path).unwrap();
        let missing = recording.processes()[0].visit(None, &mut |_| (), &mut |events| {
            seen += events.iter().count() as u64;
            ControlFlow::Continue(())
        });
        assert!(missing.unwrap().is_empty());
    });
    let in_time_order = peak_bytes(|| {
        let recording = Recording::open(&path).unwrap();
        let missing = recording.visit_in_time_order(None, &mut |_| (), &mut |_| {
            seen += 1;
            ControlFlow::Continue(())
        });
        assert!(missing.unwrap().is_empty());
    });
    assert_eq!(seen, 2 * blocks * IN_A_BLOCK);
    let merging = peak_bytes(|| {
        let summary = merge(&Recording::open(&path).unwrap(), &mut std::io::sink(), &mut |_| ()).unwrap();
        assert_eq!(summary.damaged_bytes, 0);
    });
    [visit, in_time_order, merging]
}

#[test]
fn ten_times_the_events_need_the_same_memory() {
    let (few, many) = (peaks(40), peaks(400));
    println!("peaks in bytes: {few:?} for {} events, {many:?} for ten times as many", 40 * IN_A_BLOCK);
    for (few, many) in few.into_iter().zip(many) {
        // Only about 40 bytes for each block may be added, which growing vectors may double.
        let block_index = 360 * 40 * 2;
        assert!(many <= few + few / 4 + block_index, "{few} bytes for some, {many} for ten times as many");
    }
    assert!(few[0] >= 16 * 2_000 && few[1] >= few[0] + 3 * 16 * 2_000, "{few:?} bytes can't hold the blocks");
}
