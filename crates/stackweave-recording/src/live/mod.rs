//! Recording: a buffer for each thread, and one writer. Handles slow and full disks, forks, and the ends of threads and processes.
//!
//! A thread appends events to its *chunk*, 64 KiB of its own memory (`lane.rs`), and publishes each by one store. Full chunks go to
//! the writer through a lock-free queue (`chunk.rs`) and return through a pool (`pool.rs`), so that memory stays warm. The writer
//! (`writer.rs`, `drain.rs`) also takes what is published in chunks that are not full, at the interval of
//! [`RecorderOptions::flush_every`], without involving the thread.

mod announcement;
mod children;
mod chunk;
mod chunk_start;
mod clock_points;
mod doorbells;
mod drain;
mod ended_threads;
mod error;
mod file_sink;
mod fork;
mod fork_mark;
mod futex;
mod gaps;
mod guarded_observer;
mod kind_registry;
mod known_threads;
mod lane;
mod lanes;
mod loss_counter;
mod never_block;
mod observer;
mod options;
mod output;
mod own_file;
mod pool;
mod process;
mod recorder;
mod requests;
mod ring;
mod session;
mod shared_recorder;
mod stats;
mod termination;
mod thread_words;
mod writer;
mod writer_state;
mod written_files;

pub use chunk_start::{ChunkHook, ChunkStart};
pub use error::{FlushError, StartError};
pub use gaps::gap_count;
pub use kind_registry::{FixedKind, KindNumber};
pub use known_threads::ThreadInfo;
pub use never_block::{NeverBlock, never_block_while};
pub use observer::{MakeObserver, Notes, Observer};
pub use options::{RecorderOptions, RingLimits, WhenFull};
pub use recorder::Recorder;
pub use session::{Waiter, set_waiter};
pub use stats::{RecorderStats, Summary};
