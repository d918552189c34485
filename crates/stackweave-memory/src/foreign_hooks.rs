//! States in a recording that another tool holds slots of the allocation functions, as two counters.
//!
//! The counters are there only where a slot is foreign, so that a reader knows by the names of a recording alone whether there is
//! something to say.

use std::time::{Duration, Instant};

use stackweave_recording::{KindNumber, Notes};
use stackweave_store::label;

use crate::platform::{self, Others};

/// How often slots are compared with what they held.
const EVERY: Duration = Duration::from_millis(250);

/// What a recording says about foreign slots.
#[derive(Debug)]
pub(crate) struct ForeignHooks {
    next: Instant,
    written: Others,
    /// Whether the module in `written` is known.
    has_module: bool,
    is_own_memory: bool,
}

impl ForeignHooks {
    /// Creates one for a recording that has said nothing.
    pub(crate) fn new(is_own_memory: bool) -> Self {
        Self { next: Instant::now(), written: Others::default(), has_module: false, is_own_memory }
    }

    /// Compares the slots if that is due, and records the counts if they are new.
    pub(crate) fn settle(&mut self, ticks: u64, to: (KindNumber, &mut Notes)) {
        let now = Instant::now();
        if self.is_own_memory && now >= self.next {
            platform::look_for_others();
            // Measured from the end of a walk, so that walks take a small part of the time however many modules there are.
            self.next = Instant::now() + EVERY.max(now.elapsed() * 100);
        }
        self.add(ticks, to);
    }

    /// Records the counts if they are new, or if whose slots they are was not known before.
    pub(crate) fn add(&mut self, ticks: u64, to: (KindNumber, &mut Notes)) {
        if self.is_own_memory && (platform::others() != self.written || self.is_module_found()) {
            self.add_all(ticks, to);
        }
    }

    fn is_module_found(&self) -> bool {
        self.written.foreign_slots != 0 && !self.has_module && platform::foreign_module().is_some()
    }

    /// Records the counts, as for a file that does not have what was recorded before.
    pub(crate) fn add_all(&mut self, ticks: u64, (counter, notes): (KindNumber, &mut Notes)) {
        let others = platform::others();
        if !self.is_own_memory || others.foreign_slots == 0 {
            return;
        }
        let module = platform::foreign_module();
        self.has_module = module.is_some();
        let module = module.unwrap_or_default();
        let slots = label("memory.block_slots", "", 0).map(|label| (label, others.slots));
        let foreign = label("memory.foreign_block_slots", &module, 0).map(|label| (label, others.foreign_slots));
        for (label, value) in slots.into_iter().chain(foreign) {
            #[expect(clippy::cast_precision_loss, reason = "a counter is a float: exact for any number of slots")]
            notes.record_at(ticks, counter, &[label.to_bits(), (value as f64).to_bits()]);
        }
        self.written = others;
    }
}
