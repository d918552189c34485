//! Prints the cost of an event on the writer's thread, encoding and ledger: `cargo run --release -p stackweave-memory
//! --example writer_cost`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program")]
#![expect(clippy::cast_precision_loss, reason = "figures")]

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use stackweave_core::NoNames;
use stackweave_memory::{MemoryKinds, MemoryMode, MemoryOptions, observer};
use stackweave_recording::events::Allocator;
use stackweave_recording::{MakeObserver, Notes, Observer, Recorder, RecorderOptions};
use stackweave_store::{StackTable, label};

static STACKS: StackTable = StackTable::new();
const TURNS: u64 = 4_000_000;

/// Returns the processor time of the calling thread.
fn own_nanoseconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

struct NoLedger;

impl Observer for NoLedger {
    fn events(&mut self, _: u32, _: &[u64]) {}

    fn settle(&mut self, _: u64, _: &mut Notes) {}

    fn end(&mut self, _: u64, _: &mut Notes) {}

    fn interval(&self) -> Duration {
        Duration::from_millis(20)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// Returns the cost of an event, in nanoseconds of the writer.
fn measure(path: &Path, make: MakeObserver, mode: MemoryMode, (threads, live): (u64, u64)) -> f64 {
    let recorder =
        Recorder::start_observed(RecorderOptions::new(path), &STACKS, Arc::new(NoNames), Some(make)).unwrap();
    let kinds = MemoryKinds::register(&recorder, mode).unwrap();
    let stacks: Vec<u64> = (0..100)
        .map(|number| STACKS.intern(&[label(&number.to_string(), "", 0).unwrap()]).unwrap().get().into())
        .collect();
    let (allocate, free) = (kinds.of(Allocator::Malloc).fixed::<3>().unwrap(), kinds.free.fixed::<1>().unwrap());
    let work = |thread: u64, turns: u64, is_filling: bool| {
        let mut seed = thread;
        for turn in 0..turns {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = if is_filling { turn } else { (seed >> 33) % (live / threads) };
            let address = 0x7f00_0000_0000 + (thread << 36) + number * 48;
            if !is_filling {
                recorder.record_fixed(free, [address]);
            }
            recorder.record_fixed(allocate, [address, 16 + seed % 100, stacks[(seed >> 40) as usize % 100]]);
        }
    };
    let all = |turns: u64, is_filling: bool| {
        thread::scope(|scope| {
            for thread in 0..threads {
                let work = &work;
                scope.spawn(move || work(thread, turns / threads, is_filling));
            }
        });
        recorder.query_observer(|_| own_nanoseconds()).unwrap()
    };
    let began = all(live, true);
    let spent = all(TURNS, false) - began;
    recorder.stop();
    spent / (2 * TURNS) as f64
}

fn main() {
    let folder = std::env::temp_dir().join(format!("stackweave-writer-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("out.swv");
    for (threads, live) in [(1, 10_000), (8, 10_000), (1, 10_000_000)] {
        for (name, mode, has_ledger) in [
            ("history without a ledger", MemoryMode::History, false),
            ("history", MemoryMode::History, true),
            ("aggregate", MemoryMode::Aggregate, true),
        ] {
            let options = MemoryOptions { mode, ..MemoryOptions::default() };
            let no_ledger: MakeObserver = Arc::new(|| Box::new(NoLedger));
            let make = if has_ledger { observer(&options) } else { no_ledger };
            let event = measure(&path, make, mode, (threads, live));
            println!("{threads} threads, {live} live, {name}: {event:.1} ns an event");
            std::fs::remove_file(&path).unwrap();
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
