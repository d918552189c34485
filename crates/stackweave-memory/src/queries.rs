//! Queries to a memory recorder, while it records and afterwards.
//!
//! Each waits for the recording's writer.

use stackweave_recording::MakeObserver;

use crate::ledger_observer::{self, LedgerObserver, LedgerStats};
use crate::memory::MemoryRecorder;
use crate::options::MemoryOptions;
use crate::snapshot::{BlockOrigin, MemorySnapshot};
use crate::suppress::SuppressGuard;

impl MemoryRecorder {
    /// Returns the observer with which the recording must be started
    /// ([`Recorder::start_observed`](stackweave_recording::Recorder::start_observed)).
    pub fn observer(options: &MemoryOptions) -> MakeObserver {
        ledger_observer::observer(options)
    }

    /// Returns what is live now, and what was live at the peak. `None` if the recording was started without
    /// [`MemoryRecorder::observer`].
    pub fn snapshot(&self) -> Option<MemorySnapshot> {
        self.query(LedgerObserver::snapshot)
    }

    /// Returns the origin of the live block that begins at this address, or of the mapping that contains it.
    pub fn block(&self, address: u64) -> Option<BlockOrigin> {
        self.query(move |ledgers| ledgers.block(address)).flatten()
    }

    /// Returns all live blocks, in no order.
    pub fn live_blocks(&self) -> Vec<BlockOrigin> {
        self.query(LedgerObserver::live_blocks).unwrap_or_default()
    }

    /// Writes a snapshot to the recording. Returns false if the recording has stopped.
    pub fn write_snapshot(&self) -> bool {
        let _suppress = SuppressGuard::begin();
        let ticks = self.recorder.ticks_now();
        let written = self.recorder.query_observer_with_notes(move |observer, notes| {
            observer.downcast_mut::<LedgerObserver>().is_some_and(|ledgers| ledgers.write_snapshot(ticks, notes))
        });
        written.unwrap_or(false)
    }

    /// Returns statistics of the ledgers.
    pub fn ledger_stats(&self) -> Option<LedgerStats> {
        self.query(LedgerObserver::stats)
    }

    fn query<T: Send + 'static>(&self, query: impl FnOnce(&LedgerObserver) -> T + Send + 'static) -> Option<T> {
        let _suppress = SuppressGuard::begin();
        self.recorder.query_observer(|observer| observer.downcast_ref::<LedgerObserver>().map(query)).flatten()
    }
}
