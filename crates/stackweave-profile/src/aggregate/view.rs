//! Profiles with hidden frames.

use core::mem;

use stackweave_core::Pattern;

use crate::aggregate::call_tree::{NodeId, TreeBuilder};
use crate::aggregate::function::{FrameIndex, Function, FunctionTable};
use crate::aggregate::measure::Measure;
use crate::aggregate::origin::Origin;
use crate::aggregate::profile::Profile;
use crate::frame::FrameKind;

/// A filter of functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only functions that match one of these, if there are any.
    pub include: Vec<Pattern>,
    /// No functions that match one of these.
    pub exclude: Vec<Pattern>,
    /// Only functions of these kinds, if there are any.
    pub kinds: Vec<FrameKind>,
}

impl Filter {
    /// Returns whether it shows everything.
    pub fn is_empty(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty() && self.kinds.is_empty()
    }

    /// Returns whether a function is visible.
    pub fn shows(&self, function: &Function) -> bool {
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(function.names()));
        (self.kinds.is_empty() || self.kinds.contains(&function.kind))
            && (self.include.is_empty() || any(&self.include))
            && !any(&self.exclude)
    }
}

/// Which frames of a profile are visible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Whether frames inside interpreters and libraries are visible.
    pub show_all: bool,
    /// The filter.
    pub filter: Filter,
}

impl View {
    /// Returns whether a function is visible. `is_library` is whether its nearest caller outside the interpreter is a
    /// library's, visible or not; afterwards it is that of the function's callees.
    pub fn shows(&self, function: &Function, is_library: &mut bool) -> bool {
        self.shows_origin(function.origin, is_library) && self.filter.shows(function)
    }

    /// Does the same as [`View::shows`] for a frame of which only the origin is known.
    pub fn shows_origin(&self, origin: Origin, is_library: &mut bool) -> bool {
        let is_hidden = match origin {
            Origin::Interpreter => true,
            Origin::Library => mem::replace(is_library, true),
            Origin::Program => {
                *is_library = false;
                false
            }
        };
        self.show_all || !is_hidden
    }
}

/// The cost that a view hides because it is inside libraries or the interpreter. Frames hidden by a filter do not
/// count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// The number of functions that are never visible.
    pub functions: usize,
    /// The self cost of hidden calls: it is counted for their nearest visible callers.
    pub self_cost: i64,
    /// The number of functions inside libraries that are visible because of their cost.
    pub costly: usize,
}

/// A program is mostly libraries if they hide at least this share of the total.
const MOSTLY_HIDDEN: (i64, i64) = (3, 4);
/// In such a program, functions inside libraries with at least this share of the total as self cost are visible.
const COSTLY: (i64, i64) = (1, 50);

/// Returns whether a part is at least this share of the total.
fn is_share(part: i64, total: i64, (numerator, denominator): (i64, i64)) -> bool {
    i128::from(part) * i128::from(denominator) >= i128::from(total) * i128::from(numerator)
}

/// The visible callers of a node. Nothing of the interpreter is visible, and of a library only functions that other
/// code called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VisibleCaller {
    /// The nearest visible caller, in the new tree.
    node: NodeId,
    /// Whether the nearest caller outside the interpreter is a library's, visible or not.
    is_library: bool,
}

/// The calls of a function that are hidden because of its origin.
#[derive(Clone, Copy, Debug, Default)]
struct HiddenFunction {
    /// Whether the filter shows the function.
    is_met: bool,
    /// Whether any call of it is visible.
    is_seen: bool,
    /// The self cost of its hidden calls.
    self_cost: i64,
}

impl Profile {
    /// Returns the profile as `view` shows it. The self cost of a hidden frame is added to its nearest visible caller,
    /// or to the root: the total does not change. Calls of hidden functions are not counted.
    ///
    /// If a program spends most of its time inside libraries, the functions there that take it are visible, too.
    #[must_use]
    pub fn view(&self, view: &View) -> Self {
        let shown: Vec<bool> = self.functions.functions().iter().map(|function| view.filter.shows(function)).collect();
        if view.show_all && shown.iter().all(|shown| *shown) {
            return self.clone();
        }
        let is_costly = self.costly(view);
        let mut functions = FunctionTable::default();
        let mut frames: Vec<Option<FrameIndex>> = vec![None; self.functions.frames().len()];
        let mut builder = TreeBuilder::default();
        let moves_calls = !self.measure.counts_calls();
        let moves_costs = self.measure != Measure::Calls;
        let root = self.tree.node(NodeId::ROOT).cost;
        builder.add(NodeId::ROOT, root.calls, root.self_cost);
        let mut nearest = vec![VisibleCaller { node: NodeId::ROOT, is_library: false }; self.tree.nodes().len()];
        for (id, node) in self.tree.iter() {
            let above = nearest[node.parent.index()];
            let frame = self.functions.frame(node.frame);
            let function = self.functions.function(frame.function);
            let here = &mut nearest[id.index()];
            here.is_library = above.is_library;
            let is_outside = view.shows_origin(function.origin, &mut here.is_library);
            let is_seen = (is_outside || is_costly[frame.function.index()]) && shown[frame.function.index()];
            here.node = if is_seen {
                let same = frames[node.frame.index()].get_or_insert_with(|| {
                    let same = functions.intern(function.clone());
                    functions.intern_frame(same, frame.line)
                });
                builder.child(above.node, *same)
            } else {
                above.node
            };
            let calls = if is_seen || moves_calls { node.cost.calls } else { 0 };
            let own = if is_seen || moves_costs { node.cost.self_cost } else { 0 };
            builder.add(here.node, calls, own);
        }
        Self { measure: self.measure, functions, tree: builder.finish(), counts: self.counts }
    }

    /// Returns what `view` hides, and [`View::show_all`] would show.
    pub fn hidden(&self, view: &View) -> Hidden {
        let is_costly = self.costly(view);
        let of_functions = self.hidden_functions(view);
        let mut hidden =
            Hidden { costly: is_costly.iter().filter(|is_costly| **is_costly).count(), ..Hidden::default() };
        for (of, _) in of_functions.iter().zip(&is_costly).filter(|(_, is_costly)| !**is_costly) {
            hidden.functions += usize::from(of.is_met && !of.is_seen);
            hidden.self_cost = hidden.self_cost.saturating_add(of.self_cost);
        }
        hidden
    }

    /// Returns for each function whether it is visible inside libraries because of its cost.
    fn costly(&self, view: &View) -> Vec<bool> {
        let none = || vec![false; self.functions.functions().len()];
        if view.show_all || !matches!(self.measure, Measure::WallTime | Measure::Samples) {
            return none();
        }
        let (of_functions, total) = (self.hidden_functions(view), self.total());
        let hidden = of_functions.iter().fold(0, |sum: i64, of| sum.saturating_add(of.self_cost));
        if total <= 0 || !is_share(hidden, total, MOSTLY_HIDDEN) {
            return none();
        }
        let functions = self.functions.functions().iter().zip(&of_functions);
        functions
            .map(|(function, of)| function.origin == Origin::Library && is_share(of.self_cost, total, COSTLY))
            .collect()
    }

    /// Returns for each function what is hidden of it because of its origin.
    fn hidden_functions(&self, view: &View) -> Vec<HiddenFunction> {
        let mut hidden = vec![HiddenFunction::default(); self.functions.functions().len()];
        if view.show_all {
            return hidden;
        }
        let mut is_library = vec![false; self.tree.nodes().len()];
        for (id, node) in self.tree.iter() {
            let number = self.functions.frame(node.frame).function;
            let function = self.functions.function(number);
            is_library[id.index()] = is_library[node.parent.index()];
            let is_shown = view.shows_origin(function.origin, &mut is_library[id.index()]);
            if !view.filter.shows(function) {
                continue;
            }
            let of = &mut hidden[number.index()];
            of.is_met = true;
            of.is_seen |= is_shown;
            of.self_cost = of.self_cost.saturating_add(if is_shown { 0 } else { node.cost.self_cost });
        }
        hidden
    }

    /// Returns the cost without a frame: of hidden frames without a caller, and of stacks without frames.
    pub fn without_frame(&self) -> i64 {
        self.tree.node(NodeId::ROOT).cost.self_cost
    }
}
