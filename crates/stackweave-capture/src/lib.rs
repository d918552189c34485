//! Native and interpreter frames as one woven stack, and that as an integer.
//!
//! [`capture`] walks the calling thread's native stack, asks every registered [`FrameSource`] for its frames, weaves
//! them by their addresses on the C stack, and interns the result: equal stacks have equal ids, on whichever thread. It
//! allocates nothing when warm, takes no lock and needs no interpreter's lock.
//!
//! ```
//! use stackweave_capture::{Request, capture, stacks};
//!
//! let captured = capture(&Request::default());
//! let stack = captured.stack.expect("memory for one stack");
//! for frame in stacks().frames(stack) {
//!     println!("{frame:?}");
//! }
//! assert_eq!(captured.stop(), None, "the stack is whole");
//! ```
//!
//! | to | use |
//! |---|---|
//! | capture the stack here | [`capture`] |
//! | capture what a signal interrupted | [`capture_from_context`] |
//! | add the frames of an interpreter | [`register_source`] |
//! | map generated code to its original | [`register_extra_frames`] |
//! | get the frames of a stack | [`stacks`] |
//! | name an interpreter's frame | [`locate`], [`frames_behind`] |

#![allow(clippy::inline_always, reason = "a capture is a few dozen nanoseconds: what is inlined is measured")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the platforms that capture are 64-bit: an address, a word and a usize are one size"
)]

mod buffers;
mod capture;
mod extra_frames;
mod last_stack;
mod request;
mod sources;
mod stats;
mod weave;

pub use capture::{capture, capture_from_context, intern, stacks};
pub use extra_frames::{RegisteredExtraFrames, frames_behind, has_extra_frames, register_extra_frames};
pub use request::{Capture, Request, Start, Stop};
pub use sources::{RegisteredSource, locate, register_source};
pub use stackweave_core::{ExtraFrames, FrameSource, RawFrame, SourceStop, StackId, StopReason};
pub use stats::{Stats, stats};

/// The examples of the guide, compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
pub struct Guide;
