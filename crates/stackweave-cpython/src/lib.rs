//! Python frames of the current thread, read without the GIL.
//!
//! All knowledge of Python's internals is here, for 3.10 to 3.15. Nothing is linked against a Python: functions are
//! found by name, layouts are tables of a few integers, one build serves every version.
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

#![allow(clippy::inline_always, reason = "a walk is a few dozen nanoseconds: what is inlined is measured")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the platforms that capture are 64-bit: an address, a word and a usize are one size"
)]

mod code;
mod debug_offsets;
mod frame;
mod frame_reader;
mod interpreter;
mod line_table;
mod memory;
mod public_api;
mod self_test;
mod symbols;
mod text;
mod thread_state;
mod unavailable;
mod version;
mod walk;

pub use code::CodeInfo;
pub use frame::{CodePointer, PythonFrame, Walked};
pub use frame_reader::FrameReader;
pub use interpreter::Interpreter;
pub use line_table::{Entries, Entry, LineTable, LineTableFormat};
pub use public_api::PublicApi;
pub use self_test::self_test;
pub use stackweave_core::{Position, SourceStop};
pub use thread_state::ThreadStatePointer;
pub use unavailable::Unavailable;
