//! The functions with the highest cost, over all measures.

use std::collections::HashMap;

use stackweave_profile::{FrameIndex, Measure, MeasuredProfile, Node, NodeId};

use super::names::Names;

/// The costs of functions by measure and device: self costs plus total costs, as the self cost of allocated memory is
/// always that of an allocator.
#[derive(Debug, Default)]
pub(super) struct FunctionCosts {
    /// By the indexes of functions in the report.
    sums: HashMap<(Measure, i64), Vec<u64>>,
}

impl FunctionCosts {
    /// Adds the costs of a profile, whose frames have these indexes in the report.
    pub(super) fn add(&mut self, part: &MeasuredProfile, names: &Names, frames: &[FrameIndex]) {
        let sums = self.sums.entry((part.profile.measure(), part.device)).or_default();
        sums.resize(names.functions().len().max(sums.len()), 0);
        let function = |node: &Node| frames.get(node.frame.index()).and_then(|frame| names.function_of(*frame));
        for (_, node) in part.profile.tree().iter() {
            let index = function(node);
            let parent = Some(node.parent).filter(|parent| *parent != NodeId::ROOT);
            let is_recursive = parent.is_some_and(|parent| function(part.profile.tree().node(parent)) == index);
            let total = if is_recursive { 0 } else { node.cost.total.unsigned_abs() };
            if let Some(sum) = index.and_then(|index| sums.get_mut(index)) {
                *sum = sum.saturating_add(node.cost.self_cost.unsigned_abs()).saturating_add(total);
            }
        }
    }

    /// Returns the share of each function, by its index: the sum of its shares in each measure.
    #[expect(clippy::cast_precision_loss, reason = "only the order of shares matters")]
    pub(super) fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.sums.values().map(Vec::len).max().unwrap_or(0)];
        for sums in self.sums.values() {
            let total: f64 = sums.iter().map(|cost| *cost as f64).sum();
            for (share, cost) in shares.iter_mut().zip(sums).filter(|_| total > 0.0) {
                *share += *cost as f64 / total;
            }
        }
        shares
    }
}
