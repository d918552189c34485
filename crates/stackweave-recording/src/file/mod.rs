//! The format of recordings: encoding and decoding, without any I/O. `docs/reference/format-recording.md` specifies every byte.
//!
//! A file is a sequence of framed blocks. Its content is untrusted: no bytes cause a panic, and no allocation exceeds what the
//! bytes that are present justify.

mod block;
pub(crate) mod call_fields;
mod column;
mod compression;
mod definer;
mod definition_runs;
mod definitions;
mod dictionary;
mod encoder;
mod error;
mod event_buffer;
mod events_head;
mod id_table;
mod kind_column;
mod nesting;
mod number_map;
mod numbers;
mod pending_names;
mod recorded_frames;
mod small_blocks;
mod start;
mod transpose;
mod varint;

pub use crate::clock::{ClockPoint, ClockSource};
pub use block::{BlockHeader, BlockKind, MAX_PAYLOAD, SYNC, VERSION, write_block};
pub use dictionary::Dictionary;
pub use encoder::{Consumed, Encoded, Encoder};
pub use error::BlockError;
pub use event_buffer::{BufferedEvents, EventBuffer, RawEvent};
pub use events_head::EventsHead;
pub use nesting::{Nesting, OpenWord, open_kind};
pub use number_map::{MAX_NUMBER, NumberMap, number_of};
pub use pending_names::{PendingNames, ResolvedNames};
pub use recorded_frames::{RecordedFrame, RecordedName, RecordedThread};
pub use small_blocks::{EndReason, LossReason, Lost, SectionEnd};
pub use start::{ProcessStart, RecordingMode};
