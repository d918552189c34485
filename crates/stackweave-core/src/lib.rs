//! The types that all other crates of Stackweave share.
//!
//! No I/O, no dependencies, no unsafe. A bare `u64` never crosses a crate border: the type of an address says what
//! it points at, and a walk returns why it ended.
#![forbid(unsafe_code)]

// Macros come before the modules that use them.
#[macro_use]
mod words;

mod address;
mod call;
mod event;
mod frame_kind;
mod frame_names;
mod frame_source;
mod id;
mod location;
mod module;
mod pattern;
mod printable;
mod raw_frame;
mod source_stop;
mod stop_reason;

pub use address::{CodeAddress, StackPointer};
pub use call::Call;
pub use event::{EventKind, Field, FieldType, Role};
pub use frame_kind::FrameKind;
pub use frame_names::{FrameNames, NoNames};
pub use frame_source::{ExtraFrames, FrameSource, PART_SEPARATOR, SourceKind, SourceWalk, SourceWalkResult};
pub use id::{BlobId, CodeId, FrameId, StackId};
pub use location::{Position, SourceLocation, write_location};
pub use module::{BuildId, Module, ModuleList};
pub use pattern::{FunctionNames, Pattern, PatternScope, text_matches};
pub use printable::{is_printable, printable};
pub use raw_frame::{RawFrame, RawFrameKind};
pub use source_stop::SourceStop;
pub use stop_reason::StopReason;
