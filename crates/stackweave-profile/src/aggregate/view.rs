//! Profiles with hidden frames.

use core::mem;

use stackweave_core::Pattern;

use crate::aggregate::call_tree::NodeId;
use crate::aggregate::function::Function;
use crate::aggregate::origin::CodeOrigin;
use crate::aggregate::profile::Profile;
use crate::aggregate::visible_tree::{PathStep, VisibleCaller, VisibleTree};
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

static ALL: View =
    View { show_all: true, filter: Filter { include: Vec::new(), exclude: Vec::new(), kinds: Vec::new() } };

/// Which frames of a profile are visible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Whether frames inside interpreters and libraries are visible.
    pub show_all: bool,
    /// The filter.
    pub filter: Filter,
}

impl View {
    /// Returns the view of all frames.
    pub fn all() -> &'static Self {
        &ALL
    }

    /// Returns whether a function is visible. `is_library` is whether its nearest caller outside the interpreter is a
    /// library's, visible or not; afterwards it is that of the function's callees.
    pub fn shows(&self, function: &Function, is_library: &mut bool) -> bool {
        self.shows_origin(function.origin, is_library) && self.filter.shows(function)
    }

    /// Does the same as [`View::shows`] for a frame of which only the origin is known.
    pub fn shows_origin(&self, origin: CodeOrigin, is_library: &mut bool) -> bool {
        let is_hidden = match origin {
            CodeOrigin::Interpreter => true,
            CodeOrigin::Library => mem::replace(is_library, true),
            CodeOrigin::Program => {
                *is_library = false;
                false
            }
        };
        self.show_all || !is_hidden
    }
}

impl Profile {
    /// Returns the profile as `view` shows it. The self cost of a hidden frame is added to its nearest visible caller,
    /// or to the root: the total does not change. Calls of hidden functions are not counted.
    ///
    /// If a program spends most of its time inside libraries, the functions there that take it are visible, too.
    #[must_use]
    pub fn view(&self, view: &View) -> Self {
        let viewed = VisibleTree::build(view, self.measure, &mut |visible| {
            let mut callers = vec![VisibleCaller::NONE; self.tree.nodes().len()];
            let root = self.tree.node(NodeId::ROOT).cost;
            visible.add(PathStep::after(VisibleCaller::NONE), root.calls, root.self_cost);
            for (id, node) in self.tree.iter() {
                let step = visible.descend(callers[node.parent.index()], node.frame, &self.functions);
                visible.add(step, node.cost.calls, node.cost.self_cost);
                callers[id.index()] = step.caller;
            }
        });
        Self { counts: self.counts, ..viewed }
    }

    /// Returns the cost without a frame: of hidden frames without a caller, and of stacks without frames.
    pub fn without_frame(&self) -> i64 {
        self.tree.node(NodeId::ROOT).cost.self_cost
    }
}
