//! Prints the cost of an event in the observer: `cargo run --release -p stackweave-memory --example observer_cost`,
//! with an optional upper limit for the number of live blocks.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program")]
#![expect(clippy::cast_precision_loss, reason = "figures")]

use std::sync::Arc;

use stackweave_core::NoNames;
use stackweave_memory::{LedgerObserver, MemoryKinds, MemoryMode, MemoryOptions};
use stackweave_recording::events::{self, Allocator};
use stackweave_recording::{Notes, Observer, Recorder, RecorderOptions};
use stackweave_store::StackTable;

static STACKS: StackTable = StackTable::new();
const CHUNK: usize = 8192;

/// Returns the processor time of the calling thread.
fn own_nanoseconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Returns an observer that knows all kinds.
fn observer(folder: &std::path::Path) -> (LedgerObserver, MemoryKinds) {
    let recorder = Recorder::start(
        RecorderOptions::new(folder.join(format!("{}.swv", own_nanoseconds()))),
        &STACKS,
        Arc::new(NoNames),
    )
    .unwrap();
    let mut ledgers = LedgerObserver::new(&MemoryOptions::default());
    for kind in events::BUILT_IN {
        ledgers.kind(recorder.register(kind.clone()).unwrap(), &kind);
    }
    let kinds = MemoryKinds::register(&recorder, MemoryMode::History).unwrap();
    for allocator in Allocator::ALL {
        ledgers.kind(kinds.of(allocator), &allocator.kind());
    }
    recorder.stop();
    (ledgers, kinds)
}

fn main() {
    let folder = std::env::temp_dir().join(format!("stackweave-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let most = std::env::args().nth(1).map_or(u64::MAX, |most| most.parse().unwrap());
    for live in [1_000_u64, 100_000, 10_000_000].into_iter().filter(|live| *live <= most) {
        for threads in [1_usize, 8] {
            let (mut ledgers, kinds) = observer(&folder);
            let (mut ticks, mut seed, mut notes) = (1_u64, 1, Notes::default());
            let mut buffers: Vec<Vec<u64>> = vec![Vec::new(); threads];
            let mut round = |buffers: &mut Vec<Vec<u64>>, ticks: u64| {
                let began = own_nanoseconds();
                for (thread, words) in (1..).zip(buffers.iter_mut()) {
                    for chunk in words.chunks(CHUNK / 6 * 6) {
                        ledgers.events(thread, chunk);
                    }
                    words.clear();
                }
                ledgers.settle(ticks, &mut notes);
                own_nanoseconds() - began
            };
            let (mut filling, mut working, mut events) = (0.0, 0.0, 0_u64);
            let allocate = u64::from(kinds.of(Allocator::Malloc).get());
            let free = u64::from(kinds.free.get());
            let turns = 4_000_000;
            for turn in 0..live + turns {
                let is_filling = turn < live;
                let address = 0x7f00_0000_0000 + 48 * if is_filling { turn } else { random(&mut seed) % live };
                // A few events of a thread, then of another.
                let words = &mut buffers[(turn / 3) as usize % threads];
                ticks += 100;
                if !is_filling {
                    words.extend([ticks << 8 | free, address]);
                }
                words.extend([(ticks + 50) << 8 | allocate, address, 40, 1 + address % 100]);
                if turn % 4000 == 3999 || turn + 1 == live {
                    let spent = round(&mut buffers, ticks + 60);
                    if is_filling {
                        filling += spent;
                    } else {
                        working += spent;
                    }
                    events += if is_filling { 0 } else { 8000 };
                }
            }
            let stats = ledgers.stats();
            println!(
                "{live} live, {threads} threads: {:.1} ns an event to fill, {:.1} ns an event after, {} MiB",
                filling / live as f64,
                working / events as f64,
                stats.bytes_used >> 20
            );
            assert_eq!(stats.totals.figures.live_blocks, live);
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
