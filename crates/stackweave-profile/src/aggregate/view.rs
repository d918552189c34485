//! A profile without the frames that its reader does not want to see.

use core::mem;

use stackweave_core::Pattern;

use crate::aggregate::call_tree::{NodeId, TreeBuilder};
use crate::aggregate::function::{FrameIndex, Function, FunctionTable};
use crate::aggregate::measure::Measure;
use crate::aggregate::origin::Origin;
use crate::aggregate::profile::Profile;
use crate::frame::FrameKind;

/// Which functions are seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// If there are any: only functions that one of them stands for.
    pub include: Vec<Pattern>,
    /// No function that one of them stands for.
    pub exclude: Vec<Pattern>,
    /// If there are any: only functions of these kinds.
    pub kinds: Vec<FrameKind>,
}

impl Filter {
    /// Whether it lets everything through.
    pub fn is_empty(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty() && self.kinds.is_empty()
    }

    /// Whether this function is seen.
    pub fn shows(&self, function: &Function) -> bool {
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(function.names()));
        (self.kinds.is_empty() || self.kinds.contains(&function.kind))
            && (self.include.is_empty() || any(&self.include))
            && !any(&self.exclude)
    }
}

/// How a profile is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Shows also the frames of interpreters, and what libraries do inside.
    pub show_all: bool,
    /// What is seen besides.
    pub filter: Filter,
}

impl View {
    /// Whether a function is seen. `is_library` says whether its nearest caller that is not the interpreter is a
    /// library's, seen or not; afterwards it says that for what the function calls.
    pub fn shows(&self, function: &Function, is_library: &mut bool) -> bool {
        self.shows_origin(function.origin, is_library) && self.filter.shows(function)
    }

    /// As [`View::shows`], of a frame of which only that is known.
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

/// What a view hides of a profile because it is inside libraries or the interpreter's own. What a filter leaves out is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// How many functions are seen nowhere.
    pub functions: usize,
    /// What hidden calls cost themselves: it counts as their nearest callers' that are seen.
    pub own: i64,
}

/// What is seen, by whose code a function's callers are: nothing of the interpreter, and of a library only what somebody
/// else called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Nearest {
    /// The nearest caller that is seen, in the new tree.
    seen: NodeId,
    /// Whether the nearest caller that is not the interpreter is a library's, seen or not.
    is_library: bool,
}

impl Profile {
    /// The profile as `view` shows it. What a frame that is not seen cost itself counts as its nearest caller's that is,
    /// or as the root's own if there is none: the total stays what it is. Calls of what is not seen are not counted.
    #[must_use]
    pub fn view(&self, view: &View) -> Self {
        let shown: Vec<bool> = self.functions.functions().iter().map(|function| view.filter.shows(function)).collect();
        if view.show_all && shown.iter().all(|shown| *shown) {
            return self.clone();
        }
        let mut functions = FunctionTable::default();
        let mut frames: Vec<Option<FrameIndex>> = vec![None; self.functions.frames().len()];
        let mut builder = TreeBuilder::default();
        let moves_calls = !self.measure.counts_calls();
        let moves_costs = self.measure != Measure::Calls;
        let root = self.tree.node(NodeId::ROOT).cost;
        builder.add(NodeId::ROOT, root.calls, root.own);
        let mut nearest = vec![Nearest { seen: NodeId::ROOT, is_library: false }; self.tree.nodes().len()];
        for (id, node) in self.tree.iter() {
            let above = nearest[node.parent.index()];
            let frame = self.functions.frame(node.frame);
            let function = self.functions.function(frame.function);
            let here = &mut nearest[id.index()];
            here.is_library = above.is_library;
            let is_seen = view.shows_origin(function.origin, &mut here.is_library) && shown[frame.function.index()];
            here.seen = if is_seen {
                let same = frames[node.frame.index()].get_or_insert_with(|| {
                    let same = functions.intern(function.clone());
                    functions.intern_frame(same, frame.line)
                });
                builder.child(above.seen, *same)
            } else {
                above.seen
            };
            let calls = if is_seen || moves_calls { node.cost.calls } else { 0 };
            let own = if is_seen || moves_costs { node.cost.own } else { 0 };
            builder.add(here.seen, calls, own);
        }
        Self { measure: self.measure, functions, tree: builder.finish(), counts: self.counts }
    }

    /// Returns what `view` hides, and would show with [`View::show_all`].
    pub fn hidden(&self, view: &View) -> Hidden {
        let mut hidden = Hidden::default();
        if view.show_all {
            return hidden;
        }
        let count = self.functions.functions().len();
        let (mut is_met, mut is_seen) = (vec![false; count], vec![false; count]);
        let mut is_library = vec![false; self.tree.nodes().len()];
        for (id, node) in self.tree.iter() {
            let number = self.functions.frame(node.frame).function;
            let function = self.functions.function(number);
            is_library[id.index()] = is_library[node.parent.index()];
            let is_shown = view.shows_origin(function.origin, &mut is_library[id.index()]);
            if !view.filter.shows(function) {
                continue;
            }
            is_met[number.index()] = true;
            is_seen[number.index()] |= is_shown;
            hidden.own = hidden.own.saturating_add(if is_shown { 0 } else { node.cost.own });
        }
        hidden.functions = is_met.iter().zip(&is_seen).filter(|(is_met, is_seen)| **is_met && !**is_seen).count();
        hidden
    }

    /// The costs of this profile that no frame in it has: of frames that are not seen, and of stacks without frames.
    pub fn without_frame(&self) -> i64 {
        self.tree.node(NodeId::ROOT).cost.own
    }
}
