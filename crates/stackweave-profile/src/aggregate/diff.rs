//! The differences between two profiles.

use crate::aggregate::call_tree::{CallTreeBuilder, Children, Cost, Node, NodeId};
use crate::aggregate::function::{FrameIndex, FunctionId, FunctionTable};
use crate::aggregate::hidden::Hidden;
use crate::aggregate::measure::Measure;
use crate::aggregate::profile::{DifferentMeasures, Profile};
use crate::aggregate::statistics::{CallStatistics, Statistics};

/// Two values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValueChange {
    /// In the first profile.
    pub before: f64,
    /// In the second profile.
    pub after: f64,
}

impl ValueChange {
    /// Returns the difference.
    pub fn difference(self) -> f64 {
        self.after - self.before
    }

    /// Returns the ratio; `None` if the first value is 0.
    pub fn ratio(self) -> Option<f64> {
        (self.before != 0.0).then(|| self.after / self.before)
    }
}

/// A path of the call tree in both profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffNode {
    /// The caller's node, whose id is smaller.
    pub parent: NodeId,
    /// The frame, in [`Diff::functions`]. Without meaning for the root.
    pub frame: FrameIndex,
    /// The cost in the first profile, if it has the path.
    pub before: Option<Cost>,
    /// The cost in the second profile, if it has the path.
    pub after: Option<Cost>,
}

/// A function in both profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionDiff {
    /// The function, in [`Diff::functions`].
    pub function: FunctionId,
    /// The cost in the first profile, if it has the function.
    pub before: Option<CallStatistics>,
    /// The cost in the second profile, if it has the function.
    pub after: Option<CallStatistics>,
}

/// The differences from one profile to another, by path and by function.
#[derive(Clone, Debug)]
pub struct Diff {
    measure: Measure,
    functions: FunctionTable,
    nodes: Vec<DiffNode>,
    by_function: Vec<FunctionDiff>,
    scale: Option<[f64; 2]>,
    totals: [i64; 2],
    hidden: [Hidden; 2],
}

impl Diff {
    /// Compares two profiles, even of two versions of a program: see [`FunctionTable::extend_by_version`]. With
    /// `is_normalised`, costs are shares of their profile's total, for runs of different length.
    pub fn of(before: &Profile, after: &Profile, is_normalised: bool) -> Result<Self, DifferentMeasures> {
        if before.measure() != after.measure() {
            return Err(DifferentMeasures(before.measure(), after.measure()));
        }
        let mut functions = FunctionTable::default();
        let mut builder = CallTreeBuilder::default();
        let sides = [before, after];
        let known = sides.map(|side| functions.extend_by_version(side.functions()));
        let ids = [0, 1].map(|side| builder.add_tree(sides[side].tree(), &known[side].1));
        let union = builder.finish();
        let none = |node: &Node| DiffNode { parent: node.parent, frame: node.frame, before: None, after: None };
        let mut nodes: Vec<DiffNode> = union.nodes().iter().map(none).collect();
        for (node, id) in before.tree().nodes().iter().zip(&ids[0]) {
            nodes[id.index()].before = Some(node.cost);
        }
        for (node, id) in after.tree().nodes().iter().zip(&ids[1]) {
            nodes[id.index()].after = Some(node.cost);
        }
        let totals = sides.map(Profile::total);
        let hidden = sides.map(Profile::hidden);
        let by_function = by_function(sides, &known, functions.functions().len());
        let scale = is_normalised.then(|| totals.map(share_of));
        Ok(Self { measure: before.measure(), functions, nodes, by_function, scale, totals, hidden })
    }

    /// Returns the measure.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Returns whether costs are shares, from 0 to 1.
    pub fn is_normalised(&self) -> bool {
        self.scale.is_some()
    }

    /// Returns the functions of both profiles.
    pub fn functions(&self) -> &FunctionTable {
        &self.functions
    }

    /// Returns all paths, callers first. The first node is the root.
    pub fn nodes(&self) -> &[DiffNode] {
        &self.nodes
    }

    /// Returns the children of all nodes.
    pub fn children(&self) -> Children {
        Children::of(self.nodes.iter().map(|node| node.parent.0))
    }

    /// Returns all functions.
    pub fn by_function(&self) -> &[FunctionDiff] {
        &self.by_function
    }

    /// Returns the totals of the profiles.
    pub fn total(&self) -> ValueChange {
        self.change(Some(self.totals[0]), Some(self.totals[1]))
    }

    /// Returns what the views of both profiles hide, with the totals.
    pub fn hidden(&self) -> [(Hidden, i64); 2] {
        [0, 1].map(|side| (self.hidden[side], self.totals[side]))
    }

    /// Converts two costs to the unit of this diff: to themselves, or to shares. A missing cost is 0.
    #[expect(clippy::cast_precision_loss, reason = "shares and differences are rounded for display")]
    pub fn change(&self, before: Option<i64>, after: Option<i64>) -> ValueChange {
        let [first, second] = self.scale.unwrap_or([1.0; 2]);
        ValueChange { before: before.unwrap_or(0) as f64 * first, after: after.unwrap_or(0) as f64 * second }
    }
}

#[expect(clippy::cast_precision_loss, reason = "shares are fractions")]
fn share_of(total: i64) -> f64 {
    if total == 0 { 0.0 } else { 1.0 / total as f64 }
}

#[expect(clippy::cast_possible_truncation, reason = "ids have 32 bits")]
fn by_function(
    sides: [&Profile; 2],
    known: &[(Vec<FunctionId>, Vec<FrameIndex>); 2],
    count: usize,
) -> Vec<FunctionDiff> {
    let none = |id| FunctionDiff { function: FunctionId(id as u32), before: None, after: None };
    let mut diffs: Vec<FunctionDiff> = (0..count).map(none).collect();
    for (index, side) in sides.into_iter().enumerate() {
        for (id, statistics) in Statistics::of(side).functions() {
            let diff = &mut diffs[known[index].0[id.index()].index()];
            *(if index == 0 { &mut diff.before } else { &mut diff.after }) = Some(statistics);
        }
    }
    diffs.retain(|diff| diff.before.is_some() || diff.after.is_some());
    diffs
}
