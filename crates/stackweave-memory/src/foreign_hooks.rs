//! Records, as two counters, that another tool holds slots of the allocation functions.
//!
//! The counters exist only if a slot is foreign, so that the names in a recording show whether there is something to
//! report.

use std::time::{Duration, Instant};

use stackweave_recording::{KindNumber, Notes};
use stackweave_store::label;

use crate::platform::{self, ForeignSlots};

/// The interval at which slots are compared with their earlier content.
const EVERY: Duration = Duration::from_millis(250);

/// The state of foreign slots, as a recording describes it.
#[derive(Debug)]
pub(crate) struct ForeignHookState {
    next: Instant,
    written: ForeignSlots,
    /// Whether the module in `written` is known.
    has_module: bool,
    is_own_memory: bool,
}

impl ForeignHookState {
    /// Creates the state of a recording that has no counters yet.
    pub(crate) fn new(is_own_memory: bool) -> Self {
        Self { next: Instant::now(), written: ForeignSlots::default(), has_module: false, is_own_memory }
    }

    /// Compares the slots if that is due, and records the counts if they are new.
    pub(crate) fn settle(&mut self, ticks: u64, to: (KindNumber, &mut Notes)) {
        let now = Instant::now();
        if self.is_own_memory && now >= self.next {
            platform::update_foreign_slots();
            // Measured from the end of a walk, so that walks take a small part of the time however many modules there are.
            self.next = Instant::now() + EVERY.max(now.elapsed() * 100);
        }
        self.add(ticks, to);
    }

    /// Records the counts if they are new, or if the module that holds the slots was not known before.
    pub(crate) fn add(&mut self, ticks: u64, to: (KindNumber, &mut Notes)) {
        if self.is_own_memory && (platform::foreign_slots() != self.written || self.is_module_found()) {
            self.add_all(ticks, to);
        }
    }

    fn is_module_found(&self) -> bool {
        self.written.foreign != 0 && !self.has_module && platform::foreign_module().is_some()
    }

    /// Records the counts, for a file that may lack what was recorded before.
    pub(crate) fn add_all(&mut self, ticks: u64, (counter, notes): (KindNumber, &mut Notes)) {
        let counts = platform::foreign_slots();
        if !self.is_own_memory || counts.foreign == 0 {
            return;
        }
        let module = platform::foreign_module();
        self.has_module = module.is_some();
        let module = module.unwrap_or_default();
        let slots = label("memory.block_slots", "", 0).map(|label| (label, counts.slots));
        let foreign = label("memory.foreign_block_slots", &module, 0).map(|label| (label, counts.foreign));
        for (label, value) in slots.into_iter().chain(foreign) {
            #[expect(clippy::cast_precision_loss, reason = "a counter is a float: exact for any number of slots")]
            notes.record_at(ticks, counter, &[label.to_bits(), (value as f64).to_bits()]);
        }
        self.written = counts;
    }
}
