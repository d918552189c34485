//! The costs of stacks, before frames are named.

use crate::aggregate::measure::Measure;
use crate::word_hash::WordMap;

/// The stack of a cost: one of the recording, or the open spans of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StackKey {
    /// The number of the stack in the recording.
    Stack(u32),
    /// The number of the node in the tree of spans; 0 without open spans.
    Span(u32),
}

/// Costs by stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackCosts {
    by_key: WordMap<u64, StackCost>,
}

/// The number of events, and the sum of their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackCost {
    pub(crate) events: u64,
    pub(crate) sum: i64,
}

impl StackCost {
    /// Returns the cost in a measure.
    pub(crate) fn value(self, measure: Measure) -> i64 {
        match measure {
            Measure::Allocations => i64::try_from(self.events).unwrap_or(i64::MAX),
            _ => self.sum,
        }
    }
}

const SPAN: u64 = 1 << 32;

impl StackCosts {
    pub(crate) fn add(&mut self, key: StackKey, value: i64) {
        self.add_all(key, StackCost { events: 1, sum: value });
    }

    /// Adds the cost of several events; nothing if there are none.
    pub(crate) fn add_all(&mut self, key: StackKey, added: StackCost) {
        if added == StackCost::default() {
            return;
        }
        let key = match key {
            StackKey::Stack(stack) => u64::from(stack),
            StackKey::Span(node) => SPAN | u64::from(node),
        };
        let cost = self.by_key.entry(key).or_default();
        cost.events = cost.events.saturating_add(added.events);
        cost.sum = cost.sum.saturating_add(added.sum);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Returns all costs in the order of their keys.
    #[expect(clippy::cast_possible_truncation, reason = "the bit above the number is tested first")]
    pub(crate) fn sorted(&self) -> Vec<(StackKey, StackCost)> {
        let mut all: Vec<(u64, StackCost)> = self.by_key.iter().map(|(key, cost)| (*key, *cost)).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        let stack = |key: u64| if key & SPAN == 0 { StackKey::Stack(key as u32) } else { StackKey::Span(key as u32) };
        all.into_iter().map(|(key, cost)| (stack(key), cost)).collect()
    }
}
