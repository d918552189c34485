//! Captures native and interpreter frames as one woven stack, and interns it as an integer.
//!
//! [`capture`] walks the calling thread's native stack, calls every registered [`FrameSource`] for its frames,
//! weaves them by their addresses on the C stack, and interns the result: equal stacks have equal ids, independent
//! of the thread. When warm, it allocates nothing, takes no lock and needs no interpreter's lock.
//!
//! ```
//! use stackweave_capture::{CaptureRequest, capture, stacks};
//!
//! let captured = capture(&CaptureRequest::default());
//! let stack = captured.stack.expect("memory for one stack");
//! for frame in stacks().frames(stack) {
//!     println!("{frame:?}");
//! }
//! assert_eq!(captured.stop(), None, "the stack is complete");
//! ```
//!
//! | to | use |
//! |---|---|
//! | capture the stack here | [`capture`] |
//! | capture the stack that a signal interrupted | [`capture_from_context`] |
//! | add the frames of an interpreter | [`register_source`] |
//! | map generated code to its original | [`register_extra_frames`] |
//! | get the frames of a stack | [`stacks`] |
//! | name an interpreter's frame | [`locate`], [`frames_behind`], [`write_frame`] |
//! | write the stacks of all threads, even while the process hangs | [`dump_all_threads`], [`Watchdog`] |
//! | let another process query the stacks | [`prepare_answers`], [`stack_query`] |
//! | weave stacks that were read differently | [`weave`](weave::weave) |

#![allow(clippy::inline_always, reason = "a capture is a few dozen nanoseconds: what is inlined is measured")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the platforms that capture are 64-bit: an address, a word and a usize are one size"
)]

mod buffers;
mod capture;
mod dump;
mod dumping;
mod extra_frames;
mod known_captures;
mod last_stack;
mod request;
mod sources;
pub mod stack_query;
mod stats;
mod watchdog;
pub mod weave;

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported)))]
#[path = "linux/mod.rs"]
mod platform;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported))))]
#[path = "unsupported.rs"]
mod platform;

pub use capture::{capture, capture_from_context, intern, stacks};
pub use dump::{DumpError, DumpOptions, DumpSummary};
pub use dumping::{dump_all_threads, dump_all_threads_from_context, dump_signal, prepare_answers, prepare_dumps};
pub use extra_frames::{RegisteredExtraFrames, frames_behind, has_extra_frames, register_extra_frames};
pub use request::{Capture, CaptureRequest, CaptureStart, Stop};
pub use sources::{RegisteredSource, locate, register_source, write_frame, write_parts};
pub use stackweave_core::{ExtraFrames, FrameSource, RawFrame, SourceStop, StackId, StopReason};
pub use stats::{CaptureStats, stats};
pub use watchdog::{Watchdog, WatchdogOptions};

/// The examples of the guide, compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reference/rust.md")]
pub struct Guide;
