//! The times of failed requests, which are moments of the memory over time.

use std::collections::BTreeMap;

use stackweave_core::EventKind;
use stackweave_recording::events::{Event, InstantSubject};

/// The maximum number of failed requests of a device whose times are moments.
const MAX_MOMENTS: usize = 8;

/// The times of the first failed requests of each device.
#[derive(Debug, Default)]
pub(in crate::formats::report) struct FailureTimes {
    by_device: BTreeMap<i64, Vec<u64>>,
}

impl FailureTimes {
    /// Adds an event at this time, if it is a failed request.
    #[inline]
    pub(in crate::formats::report) fn add(&mut self, time: u64, event: &Event<'_>) {
        if let Event::Instant(instant) = event
            && let InstantSubject::OutOfMemory(request) = instant.about
            && request.device != EventKind::OWN_DEVICE
        {
            self.insert(request.device, time);
        }
    }

    fn insert(&mut self, device: i64, time: u64) {
        let times = self.by_device.entry(device).or_default();
        let at = times.partition_point(|known| *known <= time);
        times.insert(at, time);
        times.truncate(MAX_MOMENTS);
    }

    /// Returns the times of a device, in order.
    pub(super) fn of(&self, device: i64) -> &[u64] {
        self.by_device.get(&device).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_times_of_each_device_are_kept_in_order() {
        let mut times = FailureTimes::default();
        for time in [50, 10, 90, 20, 70, 30, 60, 40, 80, 10] {
            times.insert(0, time);
        }
        times.insert(1, 5);
        assert_eq!(times.of(0), [10, 10, 20, 30, 40, 50, 60, 70]);
        assert_eq!((times.of(1), times.of(2)), (&[5][..], &[][..]));
    }
}
