//! The code of a program that times its own phases: the system's clock, a stack, and a list or a table.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A recorder that keeps every phase.
#[derive(Debug, Default)]
pub(super) struct Listed {
    open: Vec<(u64, Instant)>,
    pub(super) ended: Vec<(u64, Instant, Duration)>,
}

impl Listed {
    #[inline]
    pub(super) fn push(&mut self, name: u64) {
        self.open.push((name, Instant::now()));
    }

    #[inline]
    pub(super) fn pop(&mut self) {
        if let Some((name, began)) = self.open.pop() {
            self.ended.push((name, began, began.elapsed()));
        }
    }
}

/// A recorder that keeps only the calls, the self time and the total time of each phase, without events or callers.
#[derive(Debug, Default)]
pub(super) struct Totals {
    open: Vec<(u64, Instant, Duration)>,
    by_name: HashMap<u64, Cost>,
}

#[derive(Debug, Default)]
struct Cost {
    calls: u64,
    open: u32,
    self_time: Duration,
    total: Duration,
}

impl Totals {
    #[inline]
    pub(super) fn push(&mut self, name: u64) {
        self.by_name.entry(name).or_default().open += 1;
        self.open.push((name, Instant::now(), Duration::ZERO));
    }

    #[inline]
    pub(super) fn pop(&mut self) {
        let Some((name, began, inside)) = self.open.pop() else { return };
        let took = began.elapsed();
        if let Some((_, _, inside)) = self.open.last_mut() {
            *inside += took;
        }
        let cost = self.by_name.entry(name).or_default();
        cost.calls += 1;
        cost.open -= 1;
        cost.self_time += took.saturating_sub(inside);
        if cost.open == 0 {
            cost.total += took;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_count_the_same_events() {
        let (mut listed, mut totals) = (Listed::default(), Totals::default());
        for name in [1, 2, 1] {
            listed.push(name);
            totals.push(name);
        }
        for _ in 0..4 {
            listed.pop();
            totals.pop();
        }
        assert_eq!(listed.ended.iter().map(|(name, _, _)| *name).collect::<Vec<_>>(), [1, 2, 1]);
        let first = &totals.by_name[&1];
        assert_eq!((first.calls, first.open, totals.by_name[&2].calls), (2, 0, 1));
        assert!(first.total >= first.self_time);
    }
}
