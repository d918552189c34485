//! Events that are recorded after later ones, because a thread was stopped while it recorded one.
//!
//! A free whose allocation follows, and an allocation at the address of a live block whose free follows, are kept for a
//! while. They are looked up only for an event that is earlier than one recorded before, so they cost nothing
//! otherwise.

/// The number of events that are kept.
const KEPT: usize = 1024;

/// Addresses, each with the time of the event that was recorded too early.
#[derive(Debug, Default)]
pub(crate) struct EarlyEvents {
    events: Vec<(u64, u64)>,
    next: usize,
}

impl EarlyEvents {
    /// Keeps an event.
    pub(crate) fn push(&mut self, ticks: u64, address: u64) {
        if self.events.len() < KEPT {
            if self.events.try_reserve(1).is_ok() {
                self.events.push((address, ticks));
            }
        } else {
            self.events[self.next] = (address, ticks);
            self.next = (self.next + 1) % KEPT;
        }
    }

    /// Removes an event at this address that is later than `ticks`, and returns whether there was one.
    pub(crate) fn take_after(&mut self, ticks: u64, address: u64) -> bool {
        let index = self.events.iter().position(|event| event.0 == address && event.1 > ticks);
        if let Some(index) = index {
            self.events[index] = (0, 0);
        }
        index.is_some()
    }

    pub(crate) fn bytes_used(&self) -> usize {
        self.events.capacity() * size_of::<(u64, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_found_once_and_only_by_an_earlier_one() {
        let mut early = EarlyEvents::default();
        early.push(100, 0x1000);
        assert!(!early.take_after(100, 0x1000) && !early.take_after(50, 0x2000));
        assert!(early.take_after(99, 0x1000) && !early.take_after(99, 0x1000));
    }

    #[test]
    fn the_oldest_events_are_dropped() {
        let mut early = EarlyEvents::default();
        for number in 0..3000 {
            early.push(10, number * 16 + 16);
        }
        assert!(!early.take_after(1, 16) && early.take_after(1, 3000 * 16) && early.take_after(1, 2000 * 16));
        assert!(early.bytes_used() < 64 * 1024);
    }
}
