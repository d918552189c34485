//! Recordings: events of a program in a file that stays readable whatever happens to the program.
//!
//! | folder | content | |
//! |---|---|---|
//! | `clock` | ticks, and what they are in nanoseconds | |
//! | `events` | the families of events: how each is declared, and what it means | no I/O |
//! | `file` | the format: encoding and decoding of blocks | no I/O |
//! | `live` | recording: a buffer for each thread, one writer, back pressure when it is slow | hot |
//! | `read` | opening files and folders, reporting what is missing, streaming events | |
//! | `timing` | phases that a program records explicitly, on a stack for each thread | hot |
//!
//! # Recording
//!
//! A [`Recorder`] records events of any thread, and of signal handlers; each costs little more than a read of the clock. Events
//! refer to stacks by id and to names by frame, so nothing is looked up while recording.
//!
//! ```
//! # #[cfg(all(target_os = "linux", not(stackweave_unsupported)))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::sync::Arc;
//! # use stackweave_core::NoNames;
//! # let names = Arc::new(NoNames);
//! # let folder = std::env::temp_dir().join(format!("stackweave-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("out.swv");
//! use stackweave_recording::{RecorderOptions, Recorder, Recording};
//! use stackweave_store::{StackTable, label};
//!
//! static STACKS: StackTable = StackTable::new();
//!
//! let recorder = Recorder::start(RecorderOptions::new(&path), &STACKS, names)?;
//! let load = label("load batch", "", 0).ok_or("no memory")?;
//! std::thread::scope(|scope| {
//!     for _ in 0..2 {
//!         scope.spawn(|| {
//!             recorder.begin(load);
//!             recorder.allocate(0x7f00, 64, STACKS.intern(&[load]));
//!             recorder.end();
//!         });
//!     }
//! });
//! let summary = recorder.stop();
//! assert_eq!((summary.events, summary.error), (6, None));
//!
//! let recording = Recording::open(&path)?;
//! assert_eq!((recording.event_count(), recording.report()), (6, Vec::new()));
//! # std::fs::remove_dir_all(folder)?;
//! # Ok(())
//! # }
//! # #[cfg(not(all(target_os = "linux", not(stackweave_unsupported))))]
//! # fn main() {}
//! ```
//!
//! Guarantees:
//!
//! | | |
//! |---|---|
//! | the program is killed | what was recorded up to [`RecorderOptions::flush_every`] ago is in the file, which opens as any other |
//! | it exits without [`Recorder::stop`] | the file is completed at exit; `_exit`, as after a fork in Python's `multiprocessing`, counts as killed |
//! | it forks | the child records to its own file, `out.<pid>.swv`, from its first event on |
//! | it starts other programs | with [`RecorderOptions::subprocesses`] they join the recording by [`Recorder::from_environment`] |
//! | the disk is slow | buffers up to [`RecorderOptions::memory`] wait; then threads wait, or events are dropped and counted ([`WhenFull`]) |
//! | the disk is full | the file is truncated to whole blocks, events are counted as lost, and writing is retried |
//! | a signal handler interrupts its thread while that records an event | the handler's event is counted as lost |
//! | only the last moments matter | with [`RecorderOptions::ring`] they stay in memory until [`Recorder::dump`] |
//!
//! # From an event to the file
//!
//! 1. **Record** (`live/recorder.rs`, `live/lane.rs`, `live/chunk.rs`). A thread has a lane for each recorder, found by a word of
//!    thread-local memory. An event is its ticks and kind in one word, and a word for each value, appended to the lane's chunk of
//!    64 KiB; then the new length is published. No lock, no allocation, no name: a stack is its id, a function the word of its frame.
//! 2. **Hand over** (`live/pool.rs`, `live/lanes.rs`). A full chunk goes to the writer's queue, and the thread takes an empty one that
//!    was used before, because fresh memory costs more than the events. If there is none, the thread waits or counts what it drops.
//! 3. **Write** (`live/writer.rs`, `live/drain.rs`, `live/file_sink.rs`, `live/ring.rs`). One thread takes the queue, and at intervals
//!    what chunks that are not full contain. It writes to the file, or keeps the last blocks in memory with their definitions, in two
//!    generations. It never takes an interpreter's lock: the thread that flushes resolves names that need an interpreter. It also
//!    ends the lanes of threads that the kernel no longer knows: a thread may record until its very end, after its last destructor.
//! 4. **Encode** (`file/encoder.rs`, `file/transpose.rs`, `file/definer.rs`). New definitions come first: strings, modules, frames with
//!    their names, stacks. Then come the events of a chunk, a column for each value, compressed by LZ4, in a block with two checksums.
//! 5. **Read** (`read`) and **decode** (`events/decoder.rs`). Opening reads headers and definitions; events are streamed. The words of
//!    an event become a typed one by its role and by the fields that the recording declares.
//!
//! A forked child increments one number (`live/fork.rs`). Its next event detects that its lane belongs to another process, and begins
//! a new file with a new writer; the child touches nothing of its parent's session.
//!
//! Phases (`timing`) are recorded as begin and end events. The stack of open phases of each thread detects mismatches: a pop without a
//! push, phases that an enclosing one has ended, tokens that were closed already (`timing/anomalies.rs`).
//!
//! # Locks and unsafe code
//!
//! The hot path takes no lock. Threads wait for the writer only as [`WhenFull`] defines, and never for a lock that the writer needs
//! (`live/writer_state.rs`). Unsafe code is in `live`, for chunks that the recording thread and the writer share and for system calls,
//! and in `clock`; `events`, `file`, `read` and `timing` forbid it. `models` checks the chunks, lanes and the pool in all interleavings.

pub mod clock;

#[forbid(unsafe_code)]
pub mod events;

#[forbid(unsafe_code)]
pub mod file;

#[cfg(all(target_os = "linux", not(stackweave_unsupported)))]
pub mod live;

mod origin;

#[forbid(unsafe_code)]
pub mod read;

#[cfg(all(target_os = "linux", not(stackweave_unsupported)))]
#[forbid(unsafe_code)]
pub mod timing;

#[cfg(all(target_os = "linux", not(stackweave_unsupported)))]
pub use live::{
    FlushError, KindNumber, MakeObserver, NeverBlock, Notes, Observer, Recorder, RecorderOptions, RecorderStats,
    RingLimits, StartError, Summary, ThreadInfo, WhenFull, gap_count, never_block_while, set_waiter,
};
pub use origin::RecordingOrigin;
pub use read::{
    MergeError, MergeSummary, Missing, OpenError, ProcessRecording, ReadError, Recording, TimeAxis, TimeOrder,
    TimedEvent, merge, merge_to,
};
