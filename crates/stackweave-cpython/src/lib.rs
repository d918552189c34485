//! Python frames of the current thread, read without the GIL.
//!
//! All knowledge of Python's internals is in this crate, for 3.10 to 3.15. Nothing is linked against Python: functions
//! are found by name, layouts are tables of integers, one build serves every version.
//!
//! ```
//! use stackweave_cpython::{Interpreter, PythonFrame, Unavailable};
//!
//! match Interpreter::find() {
//!     Ok(interpreter) => {
//!         let mut frames = [PythonFrame::default(); 64];
//!         let walked = interpreter.walk(&mut frames);
//!         println!("{} Python frames: {}", walked.len, walked.stop);
//!     }
//!     Err(reason) => assert_eq!(reason, Unavailable::NoInterpreter),
//! }
//! ```
//!
//! [`PythonSource`] provides them as a [`FrameSource`](stackweave_core::FrameSource): with ids instead of the addresses
//! of code objects, and names that outlive these.
//!
//! # In signal handlers
//!
//! A handler may interrupt the interpreter between any two stores. These are the guarantees:
//!
//! - From 3.13 on the stack is complete, wherever the signal came. The line of the innermost frame may be that of an
//!   earlier instruction: the interpreter only records it where it could call something.
//! - On 3.11 and 3.12, if the signal came while an eval loop was starting or ending, the frames of that loop may be
//!   missing, or all frames, with [`SourceStop::Interrupted`]: a few times in ten thousand under a storm of signals.
//!   The interpreter links a loop before it has initialised the loop's structure, which until then holds what was on
//!   the stack before. That is used only if it fits the whole chain; once in some hundred thousand signals the remains
//!   of a loop that has just ended do fit, and its frames are shown.
//! - On 3.10 all frames are present, but if the signal came while a loop was starting or ending, the assignment of
//!   frames to loops may be off by one: in a greenlet when starting, everywhere when ending.
//! - Nothing is allocated, no lock is taken, the GIL is not used; code objects that were never seen before are named
//!   nevertheless. What the handler saw is not kept for later walks.
//! - If only the public API can be used, there are no frames.

#![allow(clippy::inline_always, reason = "a walk is a few dozen nanoseconds: what is inlined is measured")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the platforms that capture are 64-bit: an address, a word and a usize are one size"
)]

pub mod allocators;
mod callers;
pub mod calls;
mod code;
mod code_blob;
mod code_names;
mod code_table;
mod code_text;
mod data_stack;
mod death_watch;
mod debug_offsets;
mod frame;
mod frame_reader;
mod gil;
mod interpreter;
mod interpreters;
pub mod layout;
mod line_table;
mod memory;
pub mod program;
mod public_api;
mod public_source;
mod self_test;
mod source;
mod stats;
mod symbols;
mod text;
mod thread_state;
mod threads;
mod unavailable;
mod version;
mod walk;

pub use callers::HiddenCallers;
pub use code::CodeInfo;
pub use frame::{CodePointer, PythonFrame, WalkResult};
pub use frame_reader::FrameReader;
pub use gil::{GilUnavailable, with_gil};
pub use interpreter::Interpreter;
pub use line_table::{LineRange, LineRanges, LineTable, LineTableFormat};
pub use public_api::PublicApi;
pub use self_test::self_test;
pub use source::PythonSource;
pub use stackweave_core::{Position, SourceStop};
pub use stats::PythonStats;
pub use thread_state::ThreadStatePointer;
pub use unavailable::Unavailable;
