//! What changed between two profiles.

use crate::aggregate::call_tree::{Children, Cost, Node, NodeId, TreeBuilder};
use crate::aggregate::function::{FrameIndex, FunctionId, FunctionTable};
use crate::aggregate::measure::Measure;
use crate::aggregate::profile::{DifferentMeasures, Profile};
use crate::aggregate::statistics::{CallStatistics, Statistics};

/// Two values, and how far they are apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// In the first profile.
    pub before: f64,
    /// In the second profile.
    pub after: f64,
}

impl Change {
    /// By how much it grew.
    pub fn difference(self) -> f64 {
        self.after - self.before
    }

    /// How many times as much it is; `None` if there was nothing before.
    pub fn ratio(self) -> Option<f64> {
        (self.before != 0.0).then(|| self.after / self.before)
    }
}

/// A path of the call tree in both profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffNode {
    /// The caller's node, whose id is smaller.
    pub parent: NodeId,
    /// What it is, in [`Diff::functions`]. Without meaning for the root.
    pub frame: FrameIndex,
    /// What it cost in the first profile, if the path is there.
    pub before: Option<Cost>,
    /// What it cost in the second profile, if the path is there.
    pub after: Option<Cost>,
}

/// A function in both profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionDiff {
    /// Which, in [`Diff::functions`].
    pub function: FunctionId,
    /// What it cost in the first profile, if it is there.
    pub before: Option<CallStatistics>,
    /// What it cost in the second profile, if it is there.
    pub after: Option<CallStatistics>,
}

/// What changed from one profile to another, by path and by function.
#[derive(Clone, Debug)]
pub struct Diff {
    measure: Measure,
    functions: FunctionTable,
    nodes: Vec<DiffNode>,
    by_function: Vec<FunctionDiff>,
    scale: Option<[f64; 2]>,
    totals: [i64; 2],
}

impl Diff {
    /// Compares two profiles, also of two versions of a program: [`FunctionTable::extend_by_version`]. If `is_normalised`, costs are told as shares of their profile's total: for runs of
    /// different length.
    pub fn of(before: &Profile, after: &Profile, is_normalised: bool) -> Result<Self, DifferentMeasures> {
        if before.measure() != after.measure() {
            return Err(DifferentMeasures(before.measure(), after.measure()));
        }
        let mut functions = FunctionTable::default();
        let mut builder = TreeBuilder::default();
        let sides = [before, after];
        let known = sides.map(|side| functions.extend_by_version(side.functions()));
        let places = [0, 1].map(|side| builder.add_tree(sides[side].tree(), &known[side].1));
        let union = builder.finish();
        let none = |node: &Node| DiffNode { parent: node.parent, frame: node.frame, before: None, after: None };
        let mut nodes: Vec<DiffNode> = union.nodes().iter().map(none).collect();
        for (node, place) in before.tree().nodes().iter().zip(&places[0]) {
            nodes[place.index()].before = Some(node.cost);
        }
        for (node, place) in after.tree().nodes().iter().zip(&places[1]) {
            nodes[place.index()].after = Some(node.cost);
        }
        let totals = sides.map(Profile::total);
        let by_function = by_function(sides, &known, functions.functions().len());
        let scale = is_normalised.then(|| totals.map(share_of));
        Ok(Self { measure: before.measure(), functions, nodes, by_function, scale, totals })
    }

    /// What the costs are.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Whether costs are told as shares, from 0 to 1.
    pub fn is_normalised(&self) -> bool {
        self.scale.is_some()
    }

    /// The functions of both profiles.
    pub fn functions(&self) -> &FunctionTable {
        &self.functions
    }

    /// Every path, callers first. The first node is the root.
    pub fn nodes(&self) -> &[DiffNode] {
        &self.nodes
    }

    /// The nodes under each node.
    pub fn children(&self) -> Children {
        Children::of(self.nodes.iter().map(|node| node.parent.0))
    }

    /// Every function.
    pub fn by_function(&self) -> &[FunctionDiff] {
        &self.by_function
    }

    /// What the profiles cost altogether.
    pub fn total(&self) -> Change {
        self.change(Some(self.totals[0]), Some(self.totals[1]))
    }

    /// Two costs as this diff tells them: as they are, or as shares. What is not there is 0.
    #[expect(clippy::cast_precision_loss, reason = "shares and differences are for people")]
    pub fn change(&self, before: Option<i64>, after: Option<i64>) -> Change {
        let [first, second] = self.scale.unwrap_or([1.0; 2]);
        Change { before: before.unwrap_or(0) as f64 * first, after: after.unwrap_or(0) as f64 * second }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share is no whole number")]
fn share_of(total: i64) -> f64 {
    if total == 0 { 0.0 } else { 1.0 / total as f64 }
}

#[expect(clippy::cast_possible_truncation, reason = "ids are of 32 bits")]
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
