//! Memory over time: the resident size of the process, and its allocated bytes.
//!
//! Adds a point for each interval, and one for each maximum between two points, so that a spike is visible however
//! short it was. No points are added while nothing changes.

use std::time::{Duration, Instant};

use stackweave_core::{EventKind, RawFrame};
use stackweave_recording::{KindNumber, Notes};
use stackweave_store::label;

use crate::device_ledgers::DeviceLedgers;
use crate::resident::resident_bytes;

/// One line of the curve.
#[derive(Debug)]
struct MemoryCurveLine {
    label: Option<RawFrame>,
    /// The ticks and value of its last point.
    last: Option<(u64, u64)>,
}

impl MemoryCurveLine {
    fn new(name: &str) -> Self {
        Self { label: label(name, "", 0), last: None }
    }

    fn is_at(&self, value: u64) -> bool {
        self.last.is_some_and(|last| last.1 == value)
    }

    /// Adds a point if the value has changed, never before the time of the last point.
    #[expect(clippy::cast_precision_loss, reason = "a counter is a float: exact up to 8 PiB")]
    fn add(&mut self, ticks: u64, value: u64, (counter, notes): (KindNumber, &mut Notes)) {
        if let Some(label) = self.label.filter(|_| !self.is_at(value)) {
            let ticks = self.last.map_or(ticks, |last| ticks.max(last.0));
            notes.record_at(ticks, counter, &[label.to_bits(), (value as f64).to_bits()]);
            self.last = Some((ticks, value));
        }
    }
}

#[derive(Debug)]
pub(crate) struct UsageCurve {
    every: Duration,
    next: Option<Instant>,
    resident: MemoryCurveLine,
    /// One line for each ledger.
    allocated: Vec<MemoryCurveLine>,
}

impl UsageCurve {
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, next: None, resident: MemoryCurveLine::new("memory.rss"), allocated: Vec::new() }
    }

    /// Adds points if the interval is over. Returns the resident size of the process, if it was read.
    pub(crate) fn settle(
        &mut self,
        ticks: u64,
        ledgers: &mut DeviceLedgers,
        to: (KindNumber, &mut Notes),
    ) -> Option<u64> {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = now.checked_add(self.every);
        self.add(ticks, ledgers, to)
    }

    /// Adds points for the current values. Returns the resident size of the process.
    pub(crate) fn add(
        &mut self,
        ticks: u64,
        ledgers: &mut DeviceLedgers,
        (counter, notes): (KindNumber, &mut Notes),
    ) -> Option<u64> {
        let resident = resident_bytes();
        if let Some(bytes) = resident {
            self.resident.add(ticks, bytes, (counter, notes));
        }
        for (at, of_device) in ledgers.all.iter_mut().enumerate() {
            if at == self.allocated.len() {
                let is_own = of_device.device == EventKind::OWN_DEVICE;
                let name =
                    if is_own { "memory.heap".to_owned() } else { format!("memory.device {}", of_device.device) };
                self.allocated.push(MemoryCurveLine::new(&name));
            }
            let line = &mut self.allocated[at];
            let ((high_ticks, high), now) = (of_device.ledger.take_highest(), of_device.ledger.live_bytes());
            if high > now && line.last.is_none_or(|last| high > last.1) {
                line.add(high_ticks.min(ticks), high, (counter, notes));
            }
            line.add(ticks, now, (counter, notes));
        }
        resident
    }
}
