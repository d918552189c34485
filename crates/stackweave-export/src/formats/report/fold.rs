//! Trees that are too large for a page: what costs least is counted as its caller's.

use std::cmp::Reverse;

use stackweave_profile::{Measure, Profile};

/// A node of a tree as the page gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Folded {
    /// The place of its caller, which comes before it.
    pub(super) parent: usize,
    /// The place of its frame in the profile.
    pub(super) frame: usize,
    pub(super) calls: u64,
    pub(super) own: i64,
}

/// The nodes of a profile, callers before what they call: at most `most`, those with the greatest totals. The costs of the
/// others are their nearest caller's own, so that all totals stay what they are.
pub(super) fn folded(profile: &Profile, most: usize) -> Vec<Folded> {
    let nodes = profile.tree().nodes();
    let stays = staying(profile, most.max(1));
    let moves_calls = profile.measure() != Measure::WallTime;
    let mut places: Vec<usize> = Vec::with_capacity(nodes.len());
    let mut kept: Vec<Folded> = Vec::with_capacity(most.min(nodes.len()));
    for (id, node) in nodes.iter().enumerate() {
        let parent = places.get(node.parent.index()).copied().unwrap_or(0);
        if stays(id) {
            places.push(kept.len());
            kept.push(Folded { parent, frame: node.frame.index(), calls: node.cost.calls, own: node.cost.own });
            continue;
        }
        places.push(parent);
        let above = &mut kept[parent];
        above.own = above.own.saturating_add(node.cost.own);
        above.calls = above.calls.saturating_add(if moves_calls { node.cost.calls } else { 0 });
    }
    kept
}

/// Which nodes stay: never one whose caller does not.
fn staying(profile: &Profile, most: usize) -> impl Fn(usize) -> bool {
    let nodes = profile.tree().nodes();
    let mut greatest: Vec<u64> = Vec::new();
    let mut last = (Reverse(0), usize::MAX);
    if nodes.len() > most {
        // Weights of samples may be negative, and a caller's total less than that of what it calls.
        greatest = nodes.iter().map(|node| node.cost.total.unsigned_abs()).collect();
        for (id, node) in nodes.iter().enumerate().skip(1).rev() {
            let parent = node.parent.index();
            greatest[parent] = greatest[parent].max(greatest[id]);
        }
        greatest[0] = u64::MAX;
        let mut order: Vec<(Reverse<u64>, usize)> =
            greatest.iter().enumerate().map(|(id, total)| (Reverse(*total), id)).collect();
        last = *order.select_nth_unstable(most - 1).1;
    }
    move |id| greatest.get(id).is_none_or(|total| (Reverse(*total), id) <= last)
}
