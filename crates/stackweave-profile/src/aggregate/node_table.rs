//! The nodes of a tree by caller and frame, in half of the memory of a hash map: trees have millions of nodes.

use crate::aggregate::call_tree::{Node, NodeId};
use crate::aggregate::function::FrameIndex;

/// The numbers of nodes, by a hash of caller and frame. Each is in the first free slot from its hash on.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeTable {
    /// The hash of a node in the high half, its number in the low one; 0 for an empty slot, as the root is in no table.
    /// Their number is 0 or a power of 2.
    slots: Vec<u64>,
    used: usize,
}

const FIRST_SLOTS: usize = 16;

impl NodeTable {
    /// Returns the table of these nodes.
    pub(crate) fn of(nodes: &[Node]) -> Self {
        let mut table = Self::default();
        for (number, node) in (0..).zip(nodes).skip(1) {
            table.find_or_insert(nodes, (node.parent, node.frame), number);
        }
        table
    }

    /// Returns the node of a frame below `parent`; if it is not in the table, adds `new`, the number of the next one.
    pub(crate) fn find_or_insert(&mut self, nodes: &[Node], key: (NodeId, FrameIndex), new: u32) -> NodeId {
        if self.slots.len() * 3 <= self.used * 4 {
            self.grow();
        }
        let hash = hash(key);
        let mut slot = self.first_slot(hash);
        loop {
            let entry = self.slots[slot];
            if entry == 0 {
                self.slots[slot] = hash | u64::from(new);
                self.used += 1;
                return NodeId(new);
            }
            #[expect(clippy::cast_possible_truncation, reason = "the number is in the low half")]
            let number = NodeId(entry as u32);
            if entry & HASH == hash && nodes.get(number.index()).is_some_and(|node| (node.parent, node.frame) == key) {
                return number;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    fn grow(&mut self) {
        let more = (self.slots.len() * 2).max(FIRST_SLOTS);
        for entry in core::mem::replace(&mut self.slots, vec![0; more]).into_iter().filter(|entry| *entry != 0) {
            let mut slot = self.first_slot(entry);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (more - 1);
            }
            self.slots[slot] = entry;
        }
    }

    /// Returns the slot with the number of the highest bits of a hash.
    #[expect(clippy::cast_possible_truncation, reason = "less than the number of slots")]
    fn first_slot(&self, hash: u64) -> usize {
        (hash >> (u64::BITS - self.slots.len().trailing_zeros())) as usize
    }
}

const HASH: u64 = u64::MAX << 32;

/// Returns a hash in the high half of a word.
const fn hash((parent, frame): (NodeId, FrameIndex)) -> u64 {
    let key = (parent.0 as u64) << 32 | frame.0 as u64;
    let mixed = (key ^ key >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) & HASH
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::aggregate::call_tree::Cost;

    #[test]
    fn it_agrees_with_a_map() {
        let node = |parent, frame| Node { parent: NodeId(parent), frame: FrameIndex(frame), cost: Cost::default() };
        let (mut table, mut nodes, mut map) = (NodeTable::default(), vec![node(0, 0)], HashMap::new());
        for number in 0..50_000_u32 {
            let (parent, frame) = (number.wrapping_mul(7) % 307, number.wrapping_mul(31) % 97);
            let new = u32::try_from(nodes.len()).unwrap();
            let found = table.find_or_insert(&nodes, (NodeId(parent), FrameIndex(frame)), new);
            assert_eq!(found.0, *map.entry((parent, frame)).or_insert(new));
            if found.0 == new {
                nodes.push(node(parent, frame));
            }
        }
        assert!(nodes.len() > 20_000 && table.slots.len() <= 4 * nodes.len());
        let again = NodeTable::of(&nodes);
        assert_eq!((again.used, again.slots.len()), (table.used, table.slots.len()));
    }
}
