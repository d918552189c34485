//! Recordings: events of a program in a file that stays readable whatever happens to the program.
//!
//! | folder | holds | |
//! |---|---|---|
//! | `clock` | ticks, and what they are in nanoseconds | |
//! | `file` | the format: blocks, what they hold, both ways | no I/O |
//! | `live` | recording: a buffer for each thread, one writer, what happens when it is slow | hot |
//! | `read` | opening files and folders, what is missing in them, their events as a stream | |

pub mod clock;

#[forbid(unsafe_code)]
pub mod file;

#[cfg(all(target_os = "linux", not(stackweave_unsupported)))]
pub mod live;

#[forbid(unsafe_code)]
pub mod read;

#[cfg(all(target_os = "linux", not(stackweave_unsupported)))]
pub use live::{
    FlushError, KindNumber, Options, Recorder, RecorderStats, Ring, StartError, Summary, WhenFull, set_waiter,
};
pub use read::{
    MergeError, MergeSummary, Missing, OpenError, ProcessRecording, ReadError, Recording, TimeAxis, TimeOrder,
    TimedEvent, merge, merge_to,
};
