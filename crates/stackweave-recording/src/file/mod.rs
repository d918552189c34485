//! The format of recordings, both ways, without any I/O. `docs/reference/format-recording.md` says it byte by byte.
//!
//! A file is a sequence of framed blocks. What it holds is never trusted: nothing here panics on any bytes, and nothing
//! is allocated that the bytes present do not justify.

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
mod kind_column;
mod nesting;
mod number_map;
mod numbered;
mod numbers;
mod pending;
mod points;
mod recorded;
mod start;
mod transpose;
mod varint;

pub use crate::clock::{ClockPoint, ClockSource};
pub use block::{BlockHeader, BlockKind, MAX_PAYLOAD, SYNC, VERSION, write_block};
pub use dictionary::Dictionary;
pub use encoder::{Encoded, Encoder, Taken};
pub use error::BlockError;
pub use event_buffer::{EventBuffer, Events, RawEvent};
pub use events_head::EventsHead;
pub use nesting::{Nesting, OpenWord, open_kind};
pub use number_map::{MAX_NUMBER, NumberMap, number_of};
pub use pending::{Answered, Pending};
pub use points::{End, EndReason, LossReason, Lost};
pub use recorded::{RecordedFrame, RecordedName, RecordedThread};
pub use start::{Mode, Start};
