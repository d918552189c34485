//! Gates: whether a cost grew by more than a limit, for continuous integration.

use std::path::Path;

use stackweave_core::printable;
use stackweave_profile::{Diff, FunctionId, ValueChange};

/// The limits, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Gate {
    /// The allowed growth of the selected total.
    pub(crate) total: Option<f64>,
    /// The allowed growth of the self cost of each function, in percent of the selected total before.
    pub(crate) each: Option<f64>,
    /// Whether incomplete recordings are compared.
    pub(crate) allows_incomplete: bool,
}

/// Two profiles, with the costs of the visible functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides<'a> {
    pub(crate) diff: &'a Diff,
    pub(crate) selected: [i64; 2],
}

/// The result of a gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GateResult {
    pub(crate) is_requested: bool,
    /// The sentence about the cost that grew by too much, or why that can't be checked; `None` if no cost did.
    pub(crate) sentence: Option<String>,
    /// Whether the gate could not be checked.
    pub(crate) is_unknown: bool,
}

/// One of the two recordings, with what a gate needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked<'a> {
    pub(crate) path: &'a Path,
    /// Whether the selection contains any function.
    pub(crate) has_functions: bool,
    /// The reason why events are missing, if they are.
    pub(crate) incomplete: Option<&'a str>,
}

impl Sides<'_> {
    /// Returns the change of the selected total.
    pub(crate) fn total(&self) -> ValueChange {
        self.diff.change(Some(self.selected[0]), Some(self.selected[1]))
    }

    fn text(&self, cost: f64) -> String {
        if self.diff.is_normalised() { format!("{:.1} %", cost * 100.0) } else { self.diff.measure().text(cost) }
    }

    fn change(&self, before: Option<i64>, after: Option<i64>) -> ValueChange {
        self.diff.change(before, after)
    }

    /// Returns the function whose self cost grew most.
    fn most_grown(&self) -> Option<(FunctionId, ValueChange)> {
        let self_cost = |side: Option<stackweave_profile::CallStatistics>| side.map(|cost| cost.self_cost);
        let changes = self.diff.by_function().iter();
        let changes = changes.map(|of| (of.function, self.change(self_cost(of.before), self_cost(of.after))));
        let most = changes.max_by(|(_, a), (_, b)| a.difference().total_cmp(&b.difference()));
        most.filter(|(_, change)| change.difference() > 0.0)
    }

    fn grown(&self, subject: &str, change: ValueChange) -> String {
        let (before, after) = (self.text(change.before), self.text(change.after));
        match change.ratio() {
            Some(ratio) => format!("{subject} grew by {:.1} %, from {before} to {after}", (ratio - 1.0) * 100.0),
            None => format!("{subject} grew from nothing to {after}"),
        }
    }

    fn name(&self, function: FunctionId) -> String {
        printable(self.diff.functions().function(function).full_name())
    }
}

impl Gate {
    /// Checks both limits, and returns which one is exceeded. A gate that can't be checked does not pass.
    pub(crate) fn judge(&self, sides: &Sides<'_>, checked: [Checked<'_>; 2]) -> GateResult {
        if self.total.is_none() && self.each.is_none() {
            return GateResult::default();
        }
        if let Some(sentence) = self.unchecked(checked) {
            return GateResult { is_requested: true, sentence: Some(sentence), is_unknown: true };
        }
        let sentence = self.total_sentence(sides).or_else(|| self.each_sentence(sides));
        GateResult { is_requested: true, sentence, is_unknown: false }
    }

    /// Returns why the gate can't be checked. A function that is new has grown from nothing; but one that disappeared
    /// may have been renamed, and then the gate would always pass.
    fn unchecked(&self, checked: [Checked<'_>; 2]) -> Option<String> {
        if !self.allows_incomplete
            && let Some((side, why)) = checked.iter().find_map(|side| Some((side, side.incomplete?)))
        {
            let (path, why) = (side.path.display(), why.trim_end_matches('.'));
            return Some(format!(
                "the gate can't be checked, because {path} is incomplete: {why}; --allow-incomplete compares it anyway"
            ));
        }
        let [before, after] = checked.map(|side| side.path.display());
        match checked.map(|side| side.has_functions) {
            [_, true] => None,
            [false, false] => Some(format!(
                "the gate can't be checked, because nothing is selected in {before} and {after}: are --include, --exclude, --kind, --start and --end right?"
            )),
            [true, false] => Some(format!(
                "the gate can't be checked, because what is selected in {before} is not in {after}: was it renamed, or did the program not run?"
            )),
        }
    }

    fn total_sentence(&self, sides: &Sides<'_>) -> Option<String> {
        let limit = self.total?;
        let total = sides.total();
        if !exceeds(total.difference(), total.before, limit) {
            return None;
        }
        let most = sides.most_grown().map_or_else(String::new, |(function, change)| {
            format!("; most in {} (+{})", sides.name(function), sides.text(change.difference()))
        });
        Some(format!(
            "{}, and --fail-above allows {limit} %{most}",
            sides.grown(sides.diff.measure().describe(), total)
        ))
    }

    fn each_sentence(&self, sides: &Sides<'_>) -> Option<String> {
        let limit = self.each?;
        let (function, change) = sides.most_grown()?;
        if !exceeds(change.difference(), sides.total().before, limit) {
            return None;
        }
        let subject = format!("self {} of {}", sides.diff.measure().describe(), sides.name(function));
        let grown = sides.grown(&subject, change);
        Some(format!("{grown}, and --fail-above-each allows {limit} % of the total before"))
    }
}

/// Returns whether a cost grew by more than a number of percent; from 0, any growth is more.
fn exceeds(grown: f64, before: f64, percent: f64) -> bool {
    grown > 0.0 && grown > before * percent / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_beyond_the_limit_exceeds_it() {
        assert!(exceeds(11.0, 100.0, 10.0) && !exceeds(10.0, 100.0, 10.0) && !exceeds(-50.0, 100.0, 10.0));
        assert!(exceeds(1.0, 0.0, 50.0) && !exceeds(0.0, 0.0, 0.0) && exceeds(0.1, 100.0, 0.0));
    }
}
