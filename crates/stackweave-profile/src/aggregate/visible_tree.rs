//! Builds the tree of what a view shows, and counts what it hides, without a tree of everything.

use crate::aggregate::call_tree::{CallTreeBuilder, NodeId};
use crate::aggregate::function::{FrameIndex, Function, FunctionId, FunctionTable, ProfileFrame};
use crate::aggregate::hidden::Hidden;
use crate::aggregate::measure::Measure;
use crate::aggregate::origin::CodeOrigin;
use crate::aggregate::profile::{Profile, ProfileCounts};
use crate::aggregate::view::View;

/// A program is mostly libraries if they hide at least this share of the total.
const MOSTLY_HIDDEN: (i64, i64) = (3, 4);
/// In such a program, functions inside libraries with at least this share of the total as self cost are visible.
const COSTLY: (i64, i64) = (1, 50);

/// The visible callers of a frame. Nothing of the interpreter is visible, and of a library only functions that other
/// code called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VisibleCaller {
    /// The nearest visible caller.
    node: NodeId,
    /// Whether the nearest caller outside the interpreter is a library's, visible or not.
    is_library: bool,
}

const LIBRARY: u32 = 1 << 31;

impl VisibleCaller {
    /// That of frames without callers.
    pub(crate) const NONE: Self = Self { node: NodeId::ROOT, is_library: false };

    /// Returns it in a word, for tables of millions.
    pub(crate) fn to_bits(self) -> u32 {
        self.node.0 | if self.is_library { LIBRARY } else { 0 }
    }

    pub(crate) fn from_bits(bits: u32) -> Self {
        Self { node: NodeId(bits & !LIBRARY), is_library: bits & LIBRARY != 0 }
    }
}

/// A frame on a path, visible or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathStep {
    /// The visible callers of its callees.
    pub(crate) caller: VisibleCaller,
    /// The function, in the table of all functions; `None` for the root.
    function: Option<FunctionId>,
    /// Whether its origin hides it.
    is_hidden: bool,
    is_visible: bool,
}

impl PathStep {
    /// Returns the position between a frame and its callees.
    pub(crate) const fn after(caller: VisibleCaller) -> Self {
        Self { caller, function: None, is_hidden: false, is_visible: true }
    }
}

/// A tree of visible frames that is being built.
#[derive(Debug)]
pub(crate) struct VisibleTree<'a> {
    view: &'a View,
    measure: Measure,
    /// By function, in the table of all functions.
    seen: Vec<SeenFunction>,
    /// The visible functions.
    functions: FunctionTable,
    /// For each frame of all functions the one here.
    frames: Vec<Option<FrameIndex>>,
    builder: CallTreeBuilder,
}

/// The properties of a function that a view depends on.
#[derive(Clone, Copy, Debug)]
struct SeenFunction {
    origin: CodeOrigin,
    /// Whether the filter shows it.
    is_shown: bool,
    /// Whether it is visible inside libraries because of its cost.
    is_costly: bool,
    calls: SeenCalls,
    /// The self cost of calls that its origin hides.
    hidden_cost: i64,
}

/// The calls of a function on all paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SeenCalls {
    None,
    /// Its origin hides all of them.
    Hidden,
    Visible,
}

impl SeenFunction {
    fn new(function: &Function, view: &View) -> Self {
        let (origin, is_shown) = (function.origin, view.filter.shows(function));
        Self { origin, is_shown, is_costly: false, calls: SeenCalls::None, hidden_cost: 0 }
    }
}

impl<'a> VisibleTree<'a> {
    /// Builds the profile of what a view shows. `walk` descends to all frames and adds their costs; it is called a
    /// second time if costly functions inside libraries become visible, which is known only after the first.
    pub(crate) fn build(view: &'a View, measure: Measure, walk: &mut dyn FnMut(&mut Self)) -> Profile {
        let mut tree = Self::new(view, measure);
        walk(&mut tree);
        if let Some(costly) = tree.with_costly() {
            tree = costly;
            walk(&mut tree);
        }
        tree.finish()
    }

    fn new(view: &'a View, measure: Measure) -> Self {
        let (seen, functions, frames, builder) = Default::default();
        Self { view, measure, seen, functions, frames, builder }
    }

    /// Returns the step from a caller to a frame of the table of all functions.
    pub(crate) fn descend(&mut self, above: VisibleCaller, frame: FrameIndex, all: &FunctionTable) -> PathStep {
        let ProfileFrame { function, line } = all.frame(frame);
        if self.seen.len() < all.functions().len() {
            let new = &all.functions()[self.seen.len()..];
            self.seen.extend(new.iter().map(|new| SeenFunction::new(new, self.view)));
        }
        let mut caller = above;
        let is_hidden = !self.view.shows_origin(all.function(function).origin, &mut caller.is_library);
        let seen = &mut self.seen[function.index()];
        seen.calls = seen.calls.max(if is_hidden { SeenCalls::Hidden } else { SeenCalls::Visible });
        let is_visible = seen.is_shown && (seen.is_costly || !is_hidden);
        if is_visible {
            if self.frames.len() <= frame.index() {
                self.frames.resize(all.frames().len(), None);
            }
            let same = self.frames[frame.index()].get_or_insert_with(|| {
                let same = self.functions.intern(all.function(function).clone());
                self.functions.intern_frame(same, line)
            });
            caller.node = self.builder.child(above.node, *same);
        }
        PathStep { caller, function: Some(function), is_hidden, is_visible }
    }

    /// Adds calls and self cost of a frame. Those of a hidden frame are of its nearest visible caller, or of the root:
    /// the total does not change. Calls of hidden functions are not counted.
    pub(crate) fn add(&mut self, step: PathStep, calls: u64, self_cost: i64) {
        if let Some(function) = step.function.filter(|_| step.is_hidden) {
            let cost = &mut self.seen[function.index()].hidden_cost;
            *cost = cost.saturating_add(self_cost);
        }
        let calls = if step.is_visible || !self.measure.counts_calls() { calls } else { 0 };
        let own = if step.is_visible || self.measure != Measure::Calls { self_cost } else { 0 };
        self.builder.add(step.caller.node, calls, own);
    }

    /// Returns an empty tree that shows costly functions inside libraries, if there are any and libraries hide most of
    /// the total.
    fn with_costly(&self) -> Option<Self> {
        if self.view.show_all || !matches!(self.measure, Measure::WallTime | Measure::Samples) {
            return None;
        }
        let shown = || self.seen.iter().filter(|seen| seen.is_shown);
        let hidden = shown().fold(0, |sum: i64, seen| sum.saturating_add(seen.hidden_cost));
        let total = self.builder.total();
        if total <= 0 || !is_share(hidden, total, MOSTLY_HIDDEN) {
            return None;
        }
        let with_cost = |seen: &SeenFunction| {
            let is_library = seen.is_shown && seen.origin == CodeOrigin::Library;
            let is_costly = is_library && is_share(seen.hidden_cost, total, COSTLY);
            SeenFunction { is_costly, calls: SeenCalls::None, hidden_cost: 0, ..*seen }
        };
        let seen: Vec<SeenFunction> = self.seen.iter().map(with_cost).collect();
        seen.iter().any(|seen| seen.is_costly).then(|| Self { seen, ..Self::new(self.view, self.measure) })
    }

    fn finish(self) -> Profile {
        let mut hidden = Hidden::default();
        for seen in self.seen.iter().filter(|seen| seen.is_shown) {
            hidden.costly += usize::from(seen.is_costly);
            if !seen.is_costly {
                hidden.functions += usize::from(seen.calls == SeenCalls::Hidden);
                hidden.self_cost = hidden.self_cost.saturating_add(seen.hidden_cost);
            }
        }
        let (functions, tree, counts) = (self.functions, self.builder.finish(), ProfileCounts::default());
        let has_frames = self.seen.iter().any(|seen| seen.calls != SeenCalls::None);
        Profile { measure: self.measure, functions, tree, counts, hidden, has_frames }
    }
}

/// Returns whether a part is at least this share of the total.
fn is_share(part: i64, total: i64, (numerator, denominator): (i64, i64)) -> bool {
    i128::from(part) * i128::from(denominator) >= i128::from(total) * i128::from(numerator)
}
