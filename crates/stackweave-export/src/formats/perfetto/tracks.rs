//! The tracks of events: processes, threads and counters.

use std::collections::HashMap;

use crate::activity::NamedProcess;
use crate::formats::perfetto::fields::track;
use crate::protobuf::Message;

/// The tracks of one process. Their ids differ from those of other recordings, so that traces can be merged.
#[derive(Debug)]
pub(super) struct Tracks {
    base: u64,
    counters: HashMap<CounterName, u64>,
}

/// The identity of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CounterName {
    /// A counter that is named by a frame.
    Frame(u32),
    /// The live bytes of a device.
    AllocatedBytes(i64),
    AllocatedBlocks(i64),
}

impl Tracks {
    pub(super) fn of(process: &NamedProcess<'_>) -> Self {
        let start = process.recording.start();
        let mut base = mix(u64::from(process.pid) ^ start.started_wall_ns.cast_unsigned());
        for byte in start.host.bytes().chain(start.boot_id.bytes()) {
            base = mix(base ^ u64::from(byte));
        }
        Self { base, counters: HashMap::new() }
    }

    fn process(&self) -> u64 {
        self.base
    }

    pub(super) fn thread(&self, number: u32) -> u64 {
        mix(self.base ^ (1 << 32 | u64::from(number)))
    }

    pub(super) fn write_process(&self, process: &NamedProcess<'_>, index: usize, out: &mut Message) {
        out.unsigned(track::UUID, self.process());
        out.message(track::PROCESS, |message| {
            message.unsigned(track::PROCESS_PID, process.pid.into());
            let words = &process.recording.start().command_line;
            for word in words {
                message.text(track::PROCESS_COMMAND_LINE, word);
            }
            message.unsigned(track::PROCESS_SORT_INDEX, index as u64);
            message.text(track::PROCESS_NAME, &process.title);
            if !process.labels.is_empty() {
                message.text(track::PROCESS_LABELS, &process.labels);
            }
        });
    }

    pub(super) fn write_thread(&self, process: &NamedProcess<'_>, index: usize, out: &mut Message) {
        let thread = &process.threads[index];
        out.unsigned(track::UUID, self.thread(thread.number));
        out.unsigned(track::PARENT_UUID, self.process());
        out.message(track::THREAD, |message| {
            message.unsigned(track::THREAD_PID, process.pid.into());
            message.unsigned(track::THREAD_TID, thread.tid.into());
            message.unsigned(track::THREAD_SORT_INDEX, index as u64);
            if !thread.name.is_empty() {
                message.text(track::THREAD_NAME, &thread.name);
            }
        });
    }

    /// Returns the track of a counter, and whether it is new.
    pub(super) fn counter(&mut self, name: CounterName) -> (u64, bool) {
        let next = mix(self.base ^ (2 << 32 | self.counters.len() as u64));
        let count = self.counters.len();
        let uuid = *self.counters.entry(name).or_insert(next);
        (uuid, self.counters.len() > count)
    }

    pub(super) fn write_counter(&self, uuid: u64, name: &str, unit: u64, out: &mut Message) {
        out.unsigned(track::UUID, uuid);
        out.unsigned(track::PARENT_UUID, self.process());
        out.text(track::NAME, name);
        out.message(track::COUNTER, |message| message.unsigned(track::COUNTER_UNIT, unit));
    }
}

/// Spreads a number over 64 bits without collisions.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
