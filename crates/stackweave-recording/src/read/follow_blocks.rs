//! The events of a process that grows, block by block in the order of its file.

use super::error::ReadError;
use super::missing::Missing;
use super::process::{BlockReader, ProcessRecording};
use crate::file::EventBuffer;

/// How far somebody has come in the events of a process that grows.
#[derive(Debug, Default)]
pub struct FollowBlocks {
    /// How many blocks are done.
    done: usize,
    /// How many events are in them.
    events_done: u64,
    reader: BlockReader,
    events: EventBuffer,
    missing: Missing,
}

impl FollowBlocks {
    /// The next block, if there is one. It waits where a block has events later than `until`, in ticks:
    /// [`ProcessRecording::settled_ticks`], or `u64::MAX` for all that there is.
    pub fn next_block(&mut self, process: &ProcessRecording, until: u64) -> Result<Option<&EventBuffer>, ReadError> {
        while let Some(place) = process.section().places.get(self.done) {
            if place.last_ticks > until {
                break;
            }
            let read = process.read(place, &mut self.reader, &mut self.events)?;
            self.done += 1;
            self.events_done += u64::from(place.count);
            match read {
                Ok(()) => return Ok(Some(&self.events)),
                Err(_) => self.missing.damaged.add(place.range()),
            }
        }
        Ok(None)
    }

    /// How many events are done.
    pub fn events_done(&self) -> u64 {
        self.events_done
    }

    /// What had to be left out so far because it is damaged.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }
}

impl ProcessRecording {
    /// Up to here it is known for good when things happened; what comes later may move a little, until the recorder has read its
    /// clocks again. Of a process that has ended, all is known.
    pub fn settled_ticks(&self) -> u64 {
        if self.end().is_some() { u64::MAX } else { self.timeline().settled_ticks() }
    }

    /// The greatest ticks of any of its events, as their blocks say.
    pub fn latest_ticks(&self) -> Option<u64> {
        self.ticks().map(|(_, last)| last)
    }
}
