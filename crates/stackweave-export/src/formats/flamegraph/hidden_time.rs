//! The time of hidden calls in a picture in the order of time.

use stackweave_profile::{Hidden, Measure};

/// The spans of a thread that are open, with their times, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenTimes {
    open: Vec<OpenTime>,
    last: u64,
    /// The time of all outermost spans, and the self time of hidden ones.
    total: u64,
    hidden: u64,
}

#[derive(Clone, Copy, Debug)]
struct OpenTime {
    began: u64,
    /// The time of its callees.
    inner: u64,
    is_hidden: bool,
}

impl OpenTimes {
    pub(super) fn begin(&mut self, time: u64, is_hidden: bool) {
        self.last = self.last.max(time);
        self.open.push(OpenTime { began: self.last, inner: 0, is_hidden });
    }

    pub(super) fn end(&mut self, time: u64) {
        self.last = self.last.max(time);
        let Some(of) = self.open.pop() else { return };
        let time = self.last - of.began;
        if of.is_hidden {
            self.hidden = self.hidden.saturating_add(time.saturating_sub(of.inner));
        }
        let around = self.open.last_mut().map_or(&mut self.total, |caller| &mut caller.inner);
        *around = around.saturating_add(time);
    }

    /// Ends what is open, and returns the total time, and the self time of hidden spans.
    pub(super) fn finish(mut self) -> [i64; 2] {
        while !self.open.is_empty() {
            self.end(self.last);
        }
        [self.total, self.hidden].map(|time| i64::try_from(time).unwrap_or(i64::MAX))
    }
}

/// Returns the caption about the hidden time of all threads.
pub(super) fn caption(threads: impl Iterator<Item = OpenTimes>) -> Option<String> {
    let add = |[total, hidden]: [i64; 2], [more, more_hidden]: [i64; 2]| {
        [total.saturating_add(more), hidden.saturating_add(more_hidden)]
    };
    let [total, self_cost] = threads.map(OpenTimes::finish).fold([0; 2], add);
    Hidden { self_cost, ..Hidden::default() }.caption(total, Measure::WallTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_self_time_of_hidden_spans_counts() {
        let mut times = OpenTimes::default();
        times.begin(100, false);
        times.begin(200, true);
        times.begin(250, false);
        times.end(300);
        times.begin(350, true);
        times.end(360);
        times.end(400);
        times.begin(500, true);
        assert_eq!(times.clone().finish(), [400, 150], "open spans end with the last event");
        times.end(600);
        assert_eq!(times.clone().finish(), [500, 250]);
        assert_eq!(
            caption([times].into_iter()).unwrap(),
            "hidden inside libraries and the interpreter, counted for callers: 50.0% (250 ns); --all or all=True shows it"
        );
    }
}
