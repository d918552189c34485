//! Stackweave for hosts in C and C++: captured stacks as integers, named later.
//!
//! Everything here is the C interface, told to C by `include/stackweave.h`, which is written from this crate, and to C++
//! by `include/stackweave.hpp`. What may be called where is in `docs/reference/c-interface.md`.
//!
//! Each function checks its arguments and returns a [`stackweave_status`]. A panic ends inside the call that it happened
//! in, as [`stackweave_status::STACKWEAVE_INTERNAL`]. Nothing needs to be set up first, and nothing to be taken down.
//!
//! ```
//! use stackweave::{STACKWEAVE_NO_STACK, stackweave_capture, stackweave_frame_count, stackweave_status};
//!
//! let (mut stack, mut count) = (STACKWEAVE_NO_STACK, 0);
//! // SAFETY: no request means everything; the outputs are locals.
//! let status = unsafe { stackweave_capture(std::ptr::null(), &raw mut stack, std::ptr::null_mut()) };
//! assert_eq!(status, stackweave_status::STACKWEAVE_OK);
//! // SAFETY: the output is a local.
//! assert_eq!(unsafe { stackweave_frame_count(stack, &raw mut count) }, stackweave_status::STACKWEAVE_OK);
//! assert!(count > 0);
//! ```

#![allow(non_camel_case_types, reason = "types have the names that C knows them by")]
#![allow(clippy::doc_markdown, reason = "the comments are those of the C header too")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the platforms that capture are 64-bit: an address, a word and a usize are one size"
)]

mod border;
mod capture;
mod dump;
mod extra_frames;
mod frame;
mod gate;
mod growing;
mod handles;
mod last_error;
mod location;
mod memory_block;
mod memory_options;
mod memory_recorder;
mod process_resolver;
mod python;
mod resolve;
mod source;
mod stack;
mod stats;
mod status;
mod stop;
mod strings;
mod tag;

pub use capture::{
    STACKWEAVE_ALL, STACKWEAVE_NATIVE, STACKWEAVE_PYTHON, STACKWEAVE_SCRIPT, stackweave_capture,
    stackweave_capture_from_context, stackweave_prepare, stackweave_request,
};
pub use dump::{stackweave_dump_threads, stackweave_prepare_dumps};
pub use extra_frames::{stackweave_extra_frames, stackweave_register_extra_frames, stackweave_remove_extra_frames};
pub use frame::{stackweave_frame, stackweave_kind};
pub use last_error::stackweave_last_error;
pub use location::{stackweave_location, stackweave_locations, stackweave_locations_add};
#[doc(hidden)]
pub use memory_block::has_sink;
pub use memory_block::{
    stackweave_alloc, stackweave_block, stackweave_event, stackweave_free, stackweave_segment, stackweave_segment_free,
    stackweave_set_memory_sink, stackweave_tell,
};
pub use memory_options::{
    STACKWEAVE_MEMORY_AGGREGATE, STACKWEAVE_MEMORY_FREE_STACKS, STACKWEAVE_MEMORY_HISTORY, STACKWEAVE_MEMORY_NO_FORKS,
    STACKWEAVE_MEMORY_NO_MAPPINGS, STACKWEAVE_MEMORY_NO_NATIVE, STACKWEAVE_MEMORY_OVERWRITE, STACKWEAVE_MEMORY_SAMPLED,
    stackweave_memory_options,
};
pub use memory_recorder::{
    stackweave_memory_forked, stackweave_memory_get_usage, stackweave_memory_pause, stackweave_memory_resume,
    stackweave_memory_snapshot, stackweave_memory_start, stackweave_memory_stop, stackweave_memory_usage,
};
pub use python::{stackweave_disable_python, stackweave_enable_python};
pub use resolve::{
    stackweave_frame_callback, stackweave_resolve, stackweave_resolve_json, stackweave_resolve_json_into,
};
pub use source::{stackweave_register_source, stackweave_remove_source, stackweave_source, stackweave_walk};
pub use stack::{
    STACKWEAVE_NO_STACK, stackweave_frame_count, stackweave_raw_frame, stackweave_raw_frames, stackweave_release,
    stackweave_retain, stackweave_stack,
};
pub use stats::{stackweave_get_stats, stackweave_stats};
pub use status::{stackweave_status, stackweave_status_text};
pub use stop::{stackweave_stop, stackweave_stop_text};
pub use strings::{stackweave_free_string, stackweave_version};
