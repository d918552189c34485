//! Lower limits of our figures, and the figures without our format: references, not peers.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::io;
use std::path::Path;

use super::calls::{self, AREA, Spans};
use super::outcome::{print_figure, threads_name};
use super::program::{CALLS_PER_TREE, Listener, NoListener, Pace, grow};
use super::words::{ClockOnly, Kept, Ring, TicksOnly};
use crate::meter::thread_cpu_ns;
use crate::record::share;
use crate::statistics::median_excess;

const LIMITS: &str = "recording/limits";
const ROUNDS: usize = 21;
/// The size in bytes of the words of a call in memory.
const CALL_BYTES: usize = 24;
const TREES: usize = 4;
/// The number of bytes that are compressed at a time.
const CHUNK: usize = 1 << 20;

/// Measures a start and an end at full speed: recorded, only written to memory, or only timed.
pub(super) fn measure(folder: &Path) -> io::Result<()> {
    let recorder = calls::start(&folder.join("limits.swv"))?;
    let (spans, ring, copy) = (Spans::new(&recorder)?, Ring::new(), Copy::new());
    let contenders: [(&str, &dyn Fn()); 6] = [
        ("bare", &|| grow(TREES, Pace::Full, &NoListener)),
        ("ours", &|| grow(TREES, Pace::Full, &spans)),
        ("words only", &|| grow(TREES, Pace::Full, &ring)),
        ("memcpy", &|| grow(TREES, Pace::Full, &copy)),
        ("rdtsc", &|| grow(TREES, Pace::Full, &TicksOnly)),
        ("clock_gettime", &|| grow(TREES, Pace::Full, &ClockOnly)),
    ];
    let mut samples = contenders.map(|_| Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        for (samples, (_, run)) in samples.iter_mut().zip(&contenders) {
            let before = thread_cpu_ns();
            run();
            samples.push(share(thread_cpu_ns() - before, TREES * CALLS_PER_TREE));
        }
    }
    for (samples_of, (name, _)) in samples.iter().zip(&contenders).skip(1) {
        let cost = median_excess(samples_of, &samples[0]).unwrap_or(f64::NAN);
        print_figure(LIMITS, "a start and an end", "ns", name, cost)?;
    }
    calls::stop(&recorder)
}

/// A listener that copies the words of a call into a small ring, where later calls overwrite them.
#[derive(Debug)]
struct Copy {
    words: [u8; CALL_BYTES],
    ring: RefCell<Vec<u8>>,
    at: Cell<usize>,
}

impl Copy {
    fn new() -> Self {
        let ring = RefCell::new(vec![0; CALL_BYTES << 12]);
        Self { words: [1; CALL_BYTES], ring, at: Cell::new(0) }
    }
}

impl Listener for Copy {
    #[inline]
    fn begin(&self, _function: usize) {}

    #[inline]
    fn end(&self) {
        let mut ring = self.ring.borrow_mut();
        let at = self.at.get() % ring.len();
        ring[at..at + CALL_BYTES].copy_from_slice(black_box(&self.words));
        self.at.set(at + CALL_BYTES);
    }
}

/// Prints the size of the words of the same calls after general compression.
pub(super) fn print_compressed(calls: usize) -> io::Result<()> {
    let kept = Kept::default();
    let trees = (calls / CALLS_PER_TREE).max(1);
    grow(trees, Pace::OfPython, &kept);
    let bytes = kept.into_bytes();
    let lz4 = bytes.chunks(CHUNK).map(|chunk| lz4_flex::block::compress(chunk).len()).sum::<usize>();
    let zstd = bytes.chunks(CHUNK).map(|chunk| Ok(zstd::bulk::compress(chunk, 3)?.len())).sum::<io::Result<usize>>()?;
    for (name, length) in [("lz4 of words", lz4), ("zstd of words", zstd)] {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
        let cost = share(length as f64, trees * CALLS_PER_TREE);
        print_figure(&format!("{AREA}-bytes"), &threads_name(1), "bytes", name, cost)?;
    }
    Ok(())
}
