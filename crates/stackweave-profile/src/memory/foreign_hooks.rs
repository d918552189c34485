//! Allocations that were not recorded because another tool held the hooks.

use stackweave_recording::ProcessRecording;
use stackweave_recording::events::Counter;
use stackweave_recording::file::Dictionary;

use super::labels::frame_name;
use super::recorder_thread::RecorderThread;
use crate::word_hash::WordMap;

const SLOTS: &str = "memory.block_slots";
const FOREIGN: &str = "memory.foreign_block_slots";

/// The slots through which libraries call `malloc`, `free` and related functions, at the time when another tool held
/// most of them.
///
/// Allocations through a slot that another tool holds are not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignHooks {
    /// All slots.
    pub slots: u64,
    /// Slots that another tool held.
    pub foreign: u64,
    /// The file of the other tool's function, if it is known.
    pub module: Option<String>,
}

impl ForeignHooks {
    /// Reads the slots of a process. `None` if all slots were the recorder's, or if this can't be read.
    pub fn read(process: &ProcessRecording) -> Option<Self> {
        RecorderThread::read_counters(process).ok()?.hooks
    }

    fn is_less_than(&self, slots: u64, foreign: u64) -> bool {
        let share = |foreign: u64, slots: u64| u128::from(foreign) * u128::from(slots.max(1));
        foreign != 0 && foreign <= slots && share(foreign, self.slots) >= share(self.foreign, slots)
    }

    /// Returns whether figures can't be compared with a limit: another tool held a quarter of the slots or more. A
    /// library with its own allocator has fewer, a profiler that takes over slots has nearly all.
    pub const fn is_large_part(&self) -> bool {
        self.foreign >= self.slots / 4
    }

    /// Returns the remark for the user.
    pub fn sentence(&self) -> String {
        let Self { slots, foreign, module } = self;
        let whose = module.as_deref().map_or_else(String::new, |module| format!(" ({module})"));
        let consequence = if self.is_large_part() {
            "a large part of the allocations is missing"
        } else {
            "allocations through them are missing"
        };
        format!(
            "Another profiler or allocator{whose} held {foreign} of the {slots} slots through which libraries call malloc and free: \
             {consequence}."
        )
    }
}

/// Returns why memory figures of processes with these hooks can't be compared with a limit, if they can't.
pub fn why_unusable(hooks: &[Option<ForeignHooks>]) -> Option<String> {
    hooks.iter().flatten().find(|found| found.is_large_part()).map(ForeignHooks::sentence)
}

/// The counters of slots, as they are read.
#[derive(Debug, Default)]
pub(super) struct HookCounters {
    /// Which of the counters each frame names: of all slots, or of those of other tools.
    names: WordMap<u32, Option<bool>>,
    slots: u64,
    found: ForeignHooks,
}

impl HookCounters {
    pub(super) fn add(&mut self, dictionary: &Dictionary, counter: &Counter) {
        let name = || match frame_name(dictionary, counter.frame) {
            Some(SLOTS) => Some(true),
            Some(FOREIGN) => Some(false),
            _ => None,
        };
        let value = counter.unsigned();
        match *self.names.entry(counter.frame).or_insert_with(name) {
            Some(true) => self.slots = value,
            // It follows the number of all slots.
            Some(false) if self.found.is_less_than(self.slots, value) => {
                let module = filename(dictionary, counter.frame);
                self.found = ForeignHooks { slots: self.slots, foreign: value, module };
            }
            _ => {}
        }
    }

    /// Returns the moment when another tool held the largest share, if there was one.
    pub(super) fn found(self) -> Option<ForeignHooks> {
        Some(self.found).filter(|found| found.foreign != 0)
    }
}

fn filename(dictionary: &Dictionary, frame: u32) -> Option<String> {
    let file = dictionary.string(dictionary.names(frame).first()?.filename?)?;
    (!file.is_empty()).then(|| file.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_the_other_tool_and_the_consequence() {
        let few = ForeignHooks { slots: 96, foreign: 3, module: None };
        assert!(!few.is_large_part());
        assert_eq!(
            few.sentence(),
            "Another profiler or allocator held 3 of the 96 slots through which libraries call malloc and free: \
             allocations through them are missing."
        );
        let most = ForeignHooks { slots: 96, foreign: 74, module: Some("/lib/_memray.so".to_owned()) };
        assert!(most.is_large_part());
        let sentence = most.sentence();
        assert!(sentence.contains("(/lib/_memray.so) held 74 of the 96 slots"), "{sentence}");
        assert!(sentence.ends_with("a large part of the allocations is missing."), "{sentence}");
    }

    #[test]
    fn the_moment_with_the_largest_foreign_share_counts() {
        let found = ForeignHooks { slots: 100, foreign: 50, module: None };
        assert!(found.is_less_than(40, 30), "a larger share of fewer slots");
        assert!(!found.is_less_than(400, 60), "a smaller share of more slots");
        assert!(!found.is_less_than(10, 11), "damaged");
    }
}
