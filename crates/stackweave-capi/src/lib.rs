//! Stackweave for hosts in C and C++: captures stacks as integers, whose frames are named later.
//!
//! This crate is the C interface. `include/stackweave.h`, which is generated from it, declares it for C, and
//! `include/stackweave.hpp` wraps it for C++. `docs/reference/c-interface.md` lists where each function may be called.
//!
//! Each function checks its arguments and returns a [`stackweave_status`]. A panic is caught in the call and returned as
//! [`stackweave_status::STACKWEAVE_INTERNAL`]. No initialization or shutdown is needed.
//!
//! ```
//! use stackweave::{STACKWEAVE_NO_STACK, stackweave_capture, stackweave_get_frame_count, stackweave_status};
//!
//! let (mut stack, mut count) = (STACKWEAVE_NO_STACK, 0);
//! // SAFETY: a null request requests all frames; the outputs are locals.
//! let status = unsafe { stackweave_capture(std::ptr::null(), &raw mut stack, std::ptr::null_mut()) };
//! assert_eq!(status, stackweave_status::STACKWEAVE_OK);
//! // SAFETY: the output is a local.
//! assert_eq!(unsafe { stackweave_get_frame_count(stack, &raw mut count) }, stackweave_status::STACKWEAVE_OK);
//! assert!(count > 0);
//! ```

#![allow(non_camel_case_types, reason = "the types have their C names")]
#![allow(clippy::doc_markdown, reason = "the comments are also those of the C header")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the platforms that capture are 64-bit: an address, a word and a usize are one size"
)]

mod boundary;
mod callback_gate;
mod capture;
mod dump;
mod extra_frames;
mod frame;
mod frame_source;
mod handle_table;
mod host_block;
mod host_event;
mod host_recording;
mod last_error;
mod library_tag;
mod location;
mod memory_options;
mod memory_recorder;
mod process_resolver;
mod python;
mod resolve;
mod sized_struct;
mod stack;
mod stats;
mod status;
mod stop_reason;
mod strings;

pub use capture::{
    STACKWEAVE_CAPTURE_ALL, STACKWEAVE_CAPTURE_NATIVE, STACKWEAVE_CAPTURE_PYTHON, STACKWEAVE_CAPTURE_SCRIPT,
    stackweave_capture, stackweave_capture_from_context, stackweave_capture_request, stackweave_prepare_thread,
};
pub use dump::{stackweave_dump_threads, stackweave_prepare_dumps};
pub use extra_frames::{stackweave_extra_frames, stackweave_register_extra_frames, stackweave_remove_extra_frames};
pub use frame::{stackweave_frame, stackweave_frame_kind};
pub use frame_source::{
    stackweave_frame_source, stackweave_register_frame_source, stackweave_remove_frame_source, stackweave_source_walk,
};
pub use host_block::stackweave_host_block;
pub use host_event::stackweave_host_event_kind;
#[doc(hidden)]
pub use host_recording::has_sink;
pub use host_recording::{
    stackweave_record_allocate, stackweave_record_free, stackweave_record_host_event,
    stackweave_record_segment_allocate, stackweave_record_segment_free, stackweave_set_memory_sink,
};
pub use last_error::stackweave_last_error;
pub use location::{stackweave_add_location, stackweave_location, stackweave_location_list};
pub use memory_options::{
    STACKWEAVE_MEMORY_AGGREGATE, STACKWEAVE_MEMORY_FREE_STACKS, STACKWEAVE_MEMORY_HISTORY, STACKWEAVE_MEMORY_NO_FORKS,
    STACKWEAVE_MEMORY_NO_MAPPINGS, STACKWEAVE_MEMORY_NO_NATIVE, STACKWEAVE_MEMORY_OVERWRITE, STACKWEAVE_MEMORY_SAMPLED,
    stackweave_memory_options,
};
pub use memory_recorder::{
    stackweave_memory_get_usage, stackweave_memory_pause, stackweave_memory_resume, stackweave_memory_start,
    stackweave_memory_start_in_child, stackweave_memory_stop, stackweave_memory_usage,
    stackweave_memory_write_snapshot,
};
pub use python::{stackweave_disable_python, stackweave_enable_python};
pub use resolve::{
    stackweave_frame_callback, stackweave_resolve, stackweave_resolve_json, stackweave_resolve_json_into,
};
pub use stack::{
    STACKWEAVE_NO_STACK, stackweave_get_frame_count, stackweave_get_raw_frames, stackweave_raw_frame,
    stackweave_release, stackweave_retain, stackweave_stack,
};
pub use stats::{stackweave_get_stats, stackweave_stats};
pub use status::{stackweave_status, stackweave_status_text};
pub use stop_reason::{stackweave_stop_reason, stackweave_stop_reason_text};
pub use strings::{stackweave_free_string, stackweave_version};
