//! Reading recordings: files and folders, whole or damaged, in bounded memory.

mod damage;
mod duplicates;
mod error;
mod first_start;
mod folder;
mod follow;
mod follow_blocks;
mod follow_order;
mod index;
mod looks_like;
mod merge;
mod missing;
mod open_stack;
mod process;
mod recording;
mod scanner;
mod source;
mod time_axis;
mod time_order;
mod window;

pub use damage::Damage;
pub use error::{OpenError, ReadError};
pub use first_start::first_start;
pub use folder::SUFFIX;
pub use follow::{Changed, Follower, Look};
pub use follow_blocks::FollowBlocks;
pub use follow_order::FollowOrder;
pub use merge::{MergeError, MergeSummary, merge, merge_to};
pub use missing::{Missing, Twice};
pub use open_stack::{Ended, OpenStack};
pub use process::ProcessRecording;
pub use recording::Recording;
pub use source::Source;
pub use time_axis::TimeAxis;
pub use time_order::{TimeOrder, TimedEvent};
