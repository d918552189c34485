//! Recordings: events of a program in a file that stays readable whatever happens to the program.
//!
//! | folder | holds | |
//! |---|---|---|
//! | `clock` | ticks, and what they are in nanoseconds | |
//! | `events` | the families of events: how each is declared, and what it means | no I/O |
//! | `file` | the format: blocks, what they hold, both ways | no I/O |
//! | `live` | recording: a buffer for each thread, one writer, what happens when it is slow | hot |
//! | `read` | opening files and folders, what is missing in them, their events as a stream | |
//! | `timing` | phases that a program records itself, a stack of open ones for each thread | hot |
//!
//! # Recording
//!
//! A [`Recorder`] takes events from any thread, and from signal handlers; each costs little more than a look at the clock. Events
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
//! use stackweave_recording::{Options, Recorder, Recording};
//! use stackweave_store::{StackTable, label};
//!
//! static STACKS: StackTable = StackTable::new();
//!
//! let recorder = Recorder::start(Options::new(&path), &STACKS, names)?;
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
//! What holds, whatever happens:
//!
//! | | |
//! |---|---|
//! | the program is killed | what was recorded up to [`Options::flush_every`] ago is in the file, which opens as any other |
//! | it exits without [`Recorder::stop`] | the file is ended then; `_exit`, as after a fork in Python's `multiprocessing`, counts as killed |
//! | it forks | the child's events go to a file of its own, `out.<pid>.swv`, from its first one on |
//! | it starts other programs | with [`Options::subprocesses`] they find the way by [`Recorder::from_environment`] |
//! | the disk is slow | buffers up to [`Options::memory`] wait; then threads wait, or events are dropped and counted ([`WhenFull`]) |
//! | the disk is full | the file is cut back to whole blocks, events are counted as lost, and it is tried again |
//! | a signal handler records in the middle of an event of its thread | its event is counted as lost |
//! | only the last moments matter | with [`Options::ring`] they stay in memory until [`Recorder::dump`] |

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
    FlushError, KindNumber, MakeObserver, Notes, Observer, Options, Recorder, RecorderStats, Ring, StartError, Summary,
    ThreadOf, Unwaiting, WhenFull, gaps, never_wait_while, set_waiter,
};
pub use origin::Origin;
pub use read::{
    MergeError, MergeSummary, Missing, OpenError, ProcessRecording, ReadError, Recording, TimeAxis, TimeOrder,
    TimedEvent, merge, merge_to,
};
