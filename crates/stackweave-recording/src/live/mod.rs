//! Recording: a buffer for each thread, one writer, and what happens when it is slow, when the disk is full, when the
//! process forks, and when it ends.
//!
//! A thread appends events to its *chunk*, 64 KiB of memory that is its own (`lane.rs`), and publishes each by one store. Full
//! chunks go to the writer through a queue without locks (`chunk.rs`), and come back through a pool (`pool.rs`), so that
//! memory stays warm. The writer (`writer.rs`, `drain.rs`) also takes what is published in chunks that are not full, as
//! often as [`Options::flush_every`] says, without the thread noticing.

mod activity;
mod announcement;
mod children;
mod chunk;
mod chunk_start;
mod doorbells;
mod drain;
mod file_sink;
mod fork;
mod fork_mark;
mod futex;
mod gaps;
mod gone_threads;
mod inner;
mod kinds;
mod known_threads;
mod lane;
mod lanes;
mod observer;
mod observing;
mod options;
mod orders;
mod outcome;
mod output;
mod own_file;
mod points;
mod pool;
mod process;
mod recorder;
mod ring;
mod session;
mod tally;
mod termination;
mod thread_words;
mod unwaiting;
mod writer;
mod written_files;

pub use chunk_start::{ChunkHook, ChunkStart};
pub use gaps::gaps;
pub use kinds::{FixedKind, KindNumber};
pub use known_threads::ThreadOf;
pub use observer::{MakeObserver, Notes, Observer};
pub use options::{Options, Ring, WhenFull};
pub use outcome::{FlushError, RecorderStats, StartError, Summary};
pub use recorder::Recorder;
pub use session::{Waiter, set_waiter};
pub use unwaiting::{Unwaiting, never_wait_while};
