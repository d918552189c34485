//! The memory of a process by thread, tag and allocator, summed as its call sites are read.

use stackweave_core::EventKind;
use stackweave_heap::{CallSite, Figures, Totals};
use stackweave_recording::events;
use stackweave_recording::file::Dictionary;

use super::figures::add;
use super::foreign_hooks::ForeignHooks;
use super::labels::frame_name;
use super::report::FromBefore;
use super::timeline::MemoryTimeline;
use super::usage::UsageSource;
use crate::word_hash::WordMap;

/// The memory of a process, without its call sites.
#[derive(Debug)]
pub(crate) struct ProcessFigures {
    pub(crate) source: UsageSource,
    pub(crate) devices: Vec<DeviceSums>,
    /// The memory over time; `None` if the recording has no counters, and was not replayed.
    pub(crate) timeline: Option<MemoryTimeline>,
    pub(crate) hooks: Option<ForeignHooks>,
}

/// The memory of a device: of selected threads, except for the totals and sizes.
#[derive(Debug, Default)]
pub(crate) struct DeviceSums {
    pub(crate) device: i64,
    pub(crate) totals: Totals,
    pub(crate) is_peak_at_start: bool,
    pub(crate) sizes: Vec<(u64, Figures)>,
    /// The sum of the call sites.
    pub(crate) selected: Figures,
    pub(crate) labels: LabelSums,
}

/// The sums of call sites by the numbers of their labels.
#[derive(Debug, Default)]
pub(crate) struct LabelSums {
    /// By the number of the thread.
    pub(crate) threads: WordMap<u32, Figures>,
    /// By the number of the tag.
    pub(crate) tags: WordMap<u32, Figures>,
    /// By the number of the allocator.
    pub(crate) allocators: WordMap<u32, Figures>,
}

impl DeviceSums {
    /// Adds a call site. Its tag is a frame; its allocator is a frame in a snapshot, and a kind in a replay.
    pub(crate) fn add(&mut self, site: &CallSite, figures: &Figures) {
        add(&mut self.selected, figures);
        self.labels.add([site.thread, site.tag, site.allocator], figures);
    }
}

impl LabelSums {
    /// Adds the figures of a thread, a tag and an allocator.
    pub(crate) fn add(&mut self, numbers: [u32; 3], figures: &Figures) {
        let Self { threads, tags, allocators } = self;
        for (sums, number) in [threads, tags, allocators].into_iter().zip(numbers) {
            add(sums.entry(number).or_default(), figures);
        }
    }
}

impl ProcessFigures {
    /// Returns the sums of a device.
    pub(crate) fn device(&self, device: i64) -> Option<&DeviceSums> {
        self.devices.iter().find(|sums| sums.device == device)
    }

    /// Returns the name of an allocator in the sums.
    pub(crate) fn allocator<'d>(&self, dictionary: &'d Dictionary, number: u32) -> &'d str {
        match self.source {
            UsageSource::Snapshot if number == 0 => "",
            UsageSource::Snapshot => frame_name(dictionary, number).unwrap_or("?"),
            UsageSource::Replayed => {
                let kind = u8::try_from(number).ok().and_then(|number| dictionary.kind(number));
                kind.map_or("", |kind| &kind.name)
            }
        }
    }

    /// Returns the live memory of a device that was allocated before the recording.
    pub(crate) fn memory_from_before(&self, dictionary: &Dictionary, sums: &DeviceSums) -> FromBefore {
        let is_it = |number: u32| *self.allocator(dictionary, number) == *events::HOST_PRESENT.name;
        let mut all = FromBefore::default();
        for (_, figures) in sums.labels.allocators.iter().filter(|(number, _)| is_it(**number)) {
            all.blocks = all.blocks.saturating_add(figures.live_blocks);
            all.bytes = all.bytes.saturating_add(figures.live_bytes);
        }
        all
    }

    /// Returns the devices with any sums: always the heap.
    pub(crate) fn known_devices(&self) -> impl Iterator<Item = i64> {
        self.devices.iter().map(|sums| sums.device).chain([EventKind::OWN_DEVICE])
    }
}

/// Returns the name of a tag; empty without one.
pub(crate) fn tag_name(dictionary: &Dictionary, frame: u32) -> &str {
    if frame == 0 { "" } else { frame_name(dictionary, frame).unwrap_or("?") }
}
