//! The memory recorder: every allocation of a process, with its woven stack, in a recording.
//!
//! Calls of `malloc` and its kin are led to functions of ours by the tables through which every loaded module calls them;
//! Python's own allocators, if that is asked for, by the interpreter. An event is one capture and one record. What is live, and
//! what was live at the peak, is kept by the recording's writer, off the program's threads.

mod options;

pub use options::{MemoryOptions, Mode};
