//! Reduces trees that are too large for a page: the nodes with the least cost are merged with their callers.

use std::cmp::Reverse;

use stackweave_profile::Profile;

/// A node of a tree in the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoldedNode {
    /// The index of its caller, which comes before it.
    pub(super) parent: u32,
    /// The index of its frame in the profile.
    pub(super) frame: u32,
    pub(super) calls: u64,
    pub(super) self_cost: i64,
}

/// Returns the nodes of a profile, callers before callees: at most `most`, those with the highest totals. The costs of
/// the others are added to the self cost of their nearest caller, so totals do not change.
pub(super) fn folded(profile: &Profile, most: usize) -> Vec<FoldedNode> {
    let nodes = profile.tree().nodes();
    let is_kept = kept_nodes(profile, most.max(1));
    let moves_calls = !profile.measure().counts_calls();
    let mut indexes: Vec<u32> = Vec::with_capacity(nodes.len());
    let mut kept: Vec<FoldedNode> = Vec::with_capacity(most.min(nodes.len()));
    for (id, node) in nodes.iter().enumerate() {
        let parent = indexes.get(node.parent.index()).copied().unwrap_or(0);
        if is_kept(id) {
            indexes.push(u32::try_from(kept.len()).unwrap_or(u32::MAX));
            kept.push(FoldedNode {
                parent,
                frame: u32::try_from(node.frame.index()).unwrap_or(u32::MAX),
                calls: node.cost.calls,
                self_cost: node.cost.self_cost,
            });
            continue;
        }
        indexes.push(parent);
        let above = &mut kept[parent as usize];
        above.self_cost = above.self_cost.saturating_add(node.cost.self_cost);
        above.calls = above.calls.saturating_add(if moves_calls { node.cost.calls } else { 0 });
    }
    kept
}

/// Returns which nodes are kept: none whose caller is not.
#[expect(clippy::cast_possible_truncation, reason = "ids have 32 bits")]
fn kept_nodes(profile: &Profile, most: usize) -> impl Fn(usize) -> bool {
    let nodes = profile.tree().nodes();
    let mut greatest: Vec<u64> = Vec::new();
    let mut last = (Reverse(0), usize::MAX);
    if nodes.len() > most {
        // Samples may have negative weights, so a caller's total may be less than that of a callee.
        greatest = nodes.iter().map(|node| node.cost.total.unsigned_abs()).collect();
        for (id, node) in nodes.iter().enumerate().skip(1).rev() {
            let parent = node.parent.index();
            greatest[parent] = greatest[parent].max(greatest[id]);
        }
        greatest[0] = u64::MAX;
        let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
        let key = |id: u32| (Reverse(greatest[id as usize]), id as usize);
        last = key(*order.select_nth_unstable_by_key(most - 1, |id| key(*id)).1);
    }
    move |id| greatest.get(id).is_none_or(|total| (Reverse(*total), id) <= last)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use stackweave_core::{NoNames, RawFrame};
    use stackweave_profile::{AggregateOptions, aggregate};
    use stackweave_recording::{Recorder, RecorderOptions, Recording};
    use stackweave_store::{StackTable, label};
    use stackweave_testkit::folder::Folder;
    use stackweave_testkit::random::Random;

    use super::*;

    static STACKS: StackTable = StackTable::new();

    /// Builds a profile of samples on random stacks, with negative weights on request.
    fn profile(seed: u64, with_negative: bool) -> Result<Profile, Box<dyn core::error::Error>> {
        let (folder, mut random) = (Folder::new(), Random::new(seed));
        let path = folder.file("out.swv");
        let recorder = Recorder::start(RecorderOptions::new(&path), &STACKS, Arc::new(NoNames))?;
        for _ in 0..300 {
            let name = |random: &mut Random| label(&format!("f{}", random.below(4)), "a.py", 1);
            let stack: Vec<RawFrame> = (0..=random.below(6)).filter_map(|_| name(&mut random)).collect();
            let weight = i64::from(random.byte_below(50)) - if with_negative { 20 } else { 0 };
            recorder.sample(STACKS.intern(&stack), weight);
        }
        recorder.stop();
        let recording = Recording::open(&path)?;
        Ok(aggregate(recording.processes(), &AggregateOptions::default(), None, &mut |_| {})?.merged())
    }

    /// Returns the totals of all paths, and the sum of all calls.
    fn totals(nodes: &[FoldedNode]) -> (BTreeMap<Vec<u32>, i64>, u64) {
        let mut total: Vec<i64> = nodes.iter().map(|node| node.self_cost).collect();
        for (index, node) in nodes.iter().enumerate().skip(1).rev() {
            assert!((node.parent as usize) < index);
            total[node.parent as usize] += total[index];
        }
        let mut paths: Vec<Vec<u32>> = vec![Vec::new()];
        for node in &nodes[1..] {
            paths.push([paths[node.parent as usize].as_slice(), &[node.frame]].concat());
        }
        (paths.into_iter().zip(total).collect(), nodes.iter().map(|node| node.calls).sum())
    }

    #[test]
    fn totals_are_kept_and_nodes_with_the_least_cost_are_merged() -> Result<(), Box<dyn core::error::Error>> {
        for (seed, with_negative) in [(1, false), (2, true)] {
            let profile = profile(seed, with_negative)?;
            let nodes = profile.tree().nodes().len();
            let (all, calls) = totals(&folded(&profile, nodes));
            assert!(nodes > 100 && all.len() == nodes && calls == 300 && all[&Vec::new()] == profile.total());
            for most in [1, 2, 17, nodes / 2, nodes - 1] {
                let (kept, kept_calls) = totals(&folded(&profile, most));
                assert_eq!((kept.len(), kept_calls), (most, calls));
                assert!(kept.iter().all(|(path, total)| all[path] == *total));
                let least = kept.values().min();
                let mut gone = all.iter().filter(|(path, _)| !kept.contains_key(*path));
                assert!(with_negative || gone.all(|(_, total)| Some(total) <= least));
            }
        }
        Ok(())
    }
}
