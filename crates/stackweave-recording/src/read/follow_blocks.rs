//! The events of a growing process, block by block in the order of its file.

use super::error::ReadError;
use super::missing::Missing;
use super::process::{BlockReader, ProcessRecording};
use crate::file::EventBuffer;

/// A reader's position in the events of a growing process.
#[derive(Debug, Default)]
pub struct FollowBlocks {
    /// The number of blocks before the position.
    done: usize,
    /// The number of events in them.
    events_done: u64,
    reader: BlockReader,
    events: EventBuffer,
    missing: Missing,
}

impl FollowBlocks {
    /// Returns the next block, if there is one. It stops before a block with events later than `until`, in ticks: pass
    /// [`ProcessRecording::settled_ticks`], or `u64::MAX` for all blocks.
    pub fn next_block(&mut self, process: &ProcessRecording, until: u64) -> Result<Option<&EventBuffer>, ReadError> {
        while let Some(events_block) = process.section().event_blocks.get(self.done) {
            if events_block.last_ticks > until {
                break;
            }
            let read = process.read(events_block, &mut self.reader, &mut self.events)?;
            self.done += 1;
            self.events_done += u64::from(events_block.count);
            match read {
                Ok(()) => return Ok(Some(&self.events)),
                Err(_) => self.missing.damaged.add(events_block.range()),
            }
        }
        Ok(None)
    }

    /// Returns the number of events before the position.
    pub fn events_done(&self) -> u64 {
        self.events_done
    }

    /// Returns what was skipped so far because it is damaged.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }
}

impl ProcessRecording {
    /// Returns the ticks up to which times are final. Later times may change slightly until the recorder reads its clocks again. After
    /// the end of the process all times are final.
    pub fn settled_ticks(&self) -> u64 {
        if self.end().is_some() { u64::MAX } else { self.timeline().settled_ticks() }
    }

    /// Returns the largest ticks of any of its events, according to their blocks.
    pub fn latest_ticks(&self) -> Option<u64> {
        self.ticks().map(|(_, last)| last)
    }
}
