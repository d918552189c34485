//! Memory over time: the size of the process, and what it has taken.
//!
//! A point each interval, and one at each height between two points, so that a spike is seen however short it was. Nothing is
//! added where nothing changes.

use std::time::{Duration, Instant};

use stackweave_core::{EventKind, RawFrame};
use stackweave_recording::{KindNumber, Notes};
use stackweave_store::label;

use crate::books::Books;
use crate::resident::resident_bytes;

/// One line of the curve.
#[derive(Debug)]
struct Line {
    label: Option<RawFrame>,
    /// Its last point.
    last: Option<(u64, u64)>,
}

impl Line {
    fn new(name: &str) -> Self {
        Self { label: label(name, "", 0), last: None }
    }

    fn is_at(&self, value: u64) -> bool {
        self.last.is_some_and(|last| last.1 == value)
    }

    /// Adds a point if the value is another; never one before the last.
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
pub(crate) struct Curve {
    every: Duration,
    next: Option<Instant>,
    resident: Line,
    /// One for each book.
    taken: Vec<Line>,
}

impl Curve {
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, next: None, resident: Line::new("memory.rss"), taken: Vec::new() }
    }

    /// Adds the points of an interval that is over. Gives the size of the process, if it was looked at.
    pub(crate) fn settle(&mut self, ticks: u64, books: &mut Books, to: (KindNumber, &mut Notes)) -> Option<u64> {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = now.checked_add(self.every);
        self.add(ticks, books, to)
    }

    /// Adds what is known now. Gives the size of the process.
    pub(crate) fn add(
        &mut self,
        ticks: u64,
        books: &mut Books,
        (counter, notes): (KindNumber, &mut Notes),
    ) -> Option<u64> {
        let resident = resident_bytes();
        if let Some(bytes) = resident {
            self.resident.add(ticks, bytes, (counter, notes));
        }
        for (at, book) in books.all.iter_mut().enumerate() {
            if at == self.taken.len() {
                let is_own = book.device == EventKind::OWN_DEVICE;
                let name = if is_own { "memory.heap".to_owned() } else { format!("memory.device {}", book.device) };
                self.taken.push(Line::new(&name));
            }
            let line = &mut self.taken[at];
            let ((high_ticks, high), now) = (book.ledger.take_highest(), book.ledger.live_bytes());
            if high > now && line.last.is_none_or(|last| high > last.1) {
                line.add(high_ticks.min(ticks), high, (counter, notes));
            }
            line.add(ticks, now, (counter, notes));
        }
        resident
    }
}
