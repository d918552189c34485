//! The costs of stacks, before frames are named.

use crate::aggregate::measure::Measure;
use crate::packed_numbers::PackedNumbers;

/// The stack of a cost: one of the recording, or the open spans of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StackKey {
    /// The number of the stack in the recording.
    Stack(u32),
    /// The number of the node in the tree of spans; 0 without open spans.
    Span(u32),
}

/// Costs by stack.
///
/// They are added to the end, and merged when there are twice as many as stacks: in half of the memory of a map. After
/// the last one, they are packed: in a quarter of that.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackCosts {
    costs: Vec<(u64, StackCost)>,
    /// The number of those at the start that are sorted, without duplicates.
    merged: usize,
    /// The difference of each key from the one before, the events and the sum.
    packed: PackedNumbers,
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

/// The least number of costs that are merged before the end.
const WORTH_MERGING: usize = 1 << 10;

impl StackCosts {
    pub(crate) fn add(&mut self, key: StackKey, value: i64) {
        self.add_all(key, StackCost { events: 1, sum: value });
    }

    /// Adds the cost of several events; nothing if there are none.
    pub(crate) fn add_all(&mut self, key: StackKey, added: StackCost) {
        if added == StackCost::default() {
            return;
        }
        if self.costs.len() >= WORTH_MERGING.max(2 * self.merged) {
            self.merge();
        }
        let key = match key {
            StackKey::Stack(stack) => u64::from(stack),
            StackKey::Span(node) => SPAN | u64::from(node),
        };
        self.costs.push((key, added));
    }

    fn merge(&mut self) {
        self.costs.sort_unstable_by_key(|(key, _)| *key);
        self.costs.dedup_by(|(key, cost), (same, sum)| {
            if key == same {
                sum.events = sum.events.saturating_add(cost.events);
                sum.sum = sum.sum.saturating_add(cost.sum);
            }
            key == same
        });
        self.merged = self.costs.len();
    }

    /// Merges and packs the costs of each stack: after the last cost was added, and before any is read.
    pub(crate) fn seal(&mut self) {
        self.merge();
        let mut before = 0;
        for (key, cost) in core::mem::take(&mut self.costs) {
            self.packed.push(key - core::mem::replace(&mut before, key));
            self.packed.push(cost.events);
            self.packed.push_signed(cost.sum);
        }
        self.packed.shrink();
        self.merged = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.costs.is_empty() && self.packed.is_empty()
    }

    /// Returns all costs in the order of their keys.
    #[expect(clippy::cast_possible_truncation, reason = "the bit above the number is tested first")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StackKey, StackCost)> {
        debug_assert!(self.costs.is_empty(), "sealed");
        let (mut rest, mut key) = (self.packed.iter(), 0);
        core::iter::from_fn(move || {
            key += rest.next()?;
            let cost = StackCost { events: rest.next()?, sum: rest.next_signed()? };
            Some((if key & SPAN == 0 { StackKey::Stack(key as u32) } else { StackKey::Span(key as u32) }, cost))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_a_stack_are_merged() {
        let mut costs = StackCosts::default();
        for number in 0..100_000 {
            costs.add(StackKey::Stack(number % 7), 2);
            costs.add(StackKey::Span(number % 3), 1);
        }
        assert!(costs.costs.capacity() <= 2 * WORTH_MERGING);
        costs.seal();
        let events: Vec<(StackKey, u64)> = costs.iter().map(|(key, cost)| (key, cost.events)).collect();
        assert_eq!((events.len(), events[0]), (10, (StackKey::Stack(0), 14_286)));
        assert_eq!(
            (events[9], costs.iter().map(|(_, cost)| cost.sum).sum::<i64>()),
            ((StackKey::Span(2), 33_333), 300_000)
        );
    }
}
