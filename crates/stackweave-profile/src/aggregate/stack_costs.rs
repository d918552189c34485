//! What stacks cost, before they have names.

use crate::aggregate::measure::Measure;
use crate::word_hash::WordMap;

/// Where a cost belongs: a stack of the recording, or, where none was recorded, what its thread had begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The number of the stack in the recording.
    Stack(u32),
    /// The number of the node in the tree of spans; 0 if nothing was begun.
    Span(u32),
}

/// Costs by place.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackCosts {
    by_place: WordMap<u64, StackCost>,
}

/// How many events there were, and the sum of their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackCost {
    pub(crate) events: u64,
    pub(crate) sum: i64,
}

impl StackCost {
    /// What it counts as.
    pub(crate) fn value(self, measure: Measure) -> i64 {
        match measure {
            Measure::Allocations => i64::try_from(self.events).unwrap_or(i64::MAX),
            _ => self.sum,
        }
    }
}

const SPAN: u64 = 1 << 32;

impl StackCosts {
    pub(crate) fn add(&mut self, place: Place, value: i64) {
        self.add_all(place, StackCost { events: 1, sum: value });
    }

    /// Adds what several events cost; nothing if there were none.
    pub(crate) fn add_all(&mut self, place: Place, added: StackCost) {
        if added == StackCost::default() {
            return;
        }
        let key = match place {
            Place::Stack(stack) => u64::from(stack),
            Place::Span(node) => SPAN | u64::from(node),
        };
        let cost = self.by_place.entry(key).or_default();
        cost.events = cost.events.saturating_add(added.events);
        cost.sum = cost.sum.saturating_add(added.sum);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// Every place and what it cost, in the order of their numbers.
    #[expect(clippy::cast_possible_truncation, reason = "the bit above the number is looked at first")]
    pub(crate) fn sorted(&self) -> Vec<(Place, StackCost)> {
        let mut all: Vec<(u64, StackCost)> = self.by_place.iter().map(|(key, cost)| (*key, *cost)).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        let place = |key: u64| if key & SPAN == 0 { Place::Stack(key as u32) } else { Place::Span(key as u32) };
        all.into_iter().map(|(key, cost)| (place(key), cost)).collect()
    }
}
