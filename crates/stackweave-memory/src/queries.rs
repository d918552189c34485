//! Queries to a memory recorder while it records, and after.
//!
//! Each waits for the recording's writer.

use stackweave_recording::MakeObserver;

use crate::ledger_observer::{self, LedgerObserver, LedgerStats};
use crate::memory::Memory;
use crate::options::MemoryOptions;
use crate::quiet::Quiet;
use crate::snapshot::{BlockOrigin, Snapshot};

impl Memory {
    /// What the recording has to be started with ([`Recorder::start_observed`](stackweave_recording::Recorder::start_observed)).
    pub fn observer(options: &MemoryOptions) -> MakeObserver {
        ledger_observer::observer(options)
    }

    /// What is live now, and was at the peak. `None` if the recording was started without [`Memory::observer`].
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.query(LedgerObserver::snapshot)
    }

    /// Where the live block comes from that begins at this address, or the mapping that holds it.
    pub fn block(&self, address: u64) -> Option<BlockOrigin> {
        self.query(move |ledgers| ledgers.block(address)).flatten()
    }

    /// All live blocks, in no order.
    pub fn live_blocks(&self) -> Vec<BlockOrigin> {
        self.query(LedgerObserver::live_blocks).unwrap_or_default()
    }

    /// Adds a snapshot to the recording. False if it has stopped.
    pub fn write_snapshot(&self) -> bool {
        let _quiet = Quiet::begin();
        let ticks = self.recorder.ticks_now();
        let written = self.recorder.ask_with_notes(move |observer, notes| {
            observer.downcast_mut::<LedgerObserver>().is_some_and(|ledgers| ledgers.write_snapshot(ticks, notes))
        });
        written.unwrap_or(false)
    }

    /// How the ledgers are doing.
    pub fn ledger_stats(&self) -> Option<LedgerStats> {
        self.query(LedgerObserver::stats)
    }

    fn query<T: Send + 'static>(&self, query: impl FnOnce(&LedgerObserver) -> T + Send + 'static) -> Option<T> {
        let _quiet = Quiet::begin();
        self.recorder.ask(|observer| observer.downcast_ref::<LedgerObserver>().map(query)).flatten()
    }
}
