//! The cost that a view hides, and the sentence about it.

use crate::aggregate::measure::Measure;

/// Hidden functions with a smaller share of the total are not mentioned.
const LEAST: f64 = 0.01;

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

impl Hidden {
    /// Adds what is hidden of another part. Functions that both hide count twice.
    pub(crate) const fn add(&mut self, other: Self) {
        self.functions = self.functions.saturating_add(other.functions);
        self.self_cost = self.self_cost.saturating_add(other.self_cost);
        self.costly = self.costly.saturating_add(other.costly);
    }

    /// Returns the share of the hidden self cost in the total; 0 of nothing. Calls of hidden functions are not in the total.
    #[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
    pub fn share(self, total: i64, measure: Measure) -> f64 {
        let hidden = if measure == Measure::Calls { self.self_cost } else { 0 };
        let total = total.saturating_add(hidden);
        if total == 0 { 0.0 } else { self.self_cost as f64 / total as f64 }
    }

    /// Returns a sentence about the hidden functions, without its full stop, and the option that shows them. `None` for a
    /// negligible share of the total.
    pub fn sentence(self, total: i64, measure: Measure, option: &str) -> Option<String> {
        (self.functions > 0 && self.is_worth_saying(total, measure)).then(|| {
            let functions = Measure::Calls.text(float(self.functions));
            let (s, are) = if self.functions == 1 { ("", "is") } else { ("s", "are") };
            let except = self.except();
            let (amount, [what, counted]) = (self.amount(total, measure), terms(measure));
            format!(
                "{functions} function{s} inside libraries and the interpreter {are} hidden{except}: {amount} of {what}{counted}; \
                 {option} shows them"
            )
        })
    }

    /// Returns the caption of a picture about what is hidden. `None` for a negligible share of the total.
    pub fn caption(self, total: i64, measure: Measure) -> Option<String> {
        self.is_worth_saying(total, measure).then(|| caption(&self.amount(total, measure), measure))
    }

    /// Returns the caption of a picture of two profiles.
    pub fn caption_of_both([before, after]: [(Self, i64); 2], measure: Measure) -> Option<String> {
        let is_worth_saying = [before, after].iter().any(|(hidden, total)| hidden.is_worth_saying(*total, measure));
        let [before, after] = [before, after].map(|(hidden, total)| hidden.amount(total, measure));
        is_worth_saying.then(|| caption(&format!("{before} before, {after} after"), measure))
    }

    /// Returns a sentence about what two profiles hide.
    pub fn sentence_of_both([before, after]: [(Self, i64); 2], measure: Measure, option: &str) -> Option<String> {
        let is_worth_saying = [before, after].iter().any(|(hidden, total)| hidden.is_worth_saying(*total, measure));
        let except = if before.0.costly > 0 { before.0.except() } else { after.0.except() };
        let [before, after] = [before, after].map(|(hidden, total)| hidden.amount(total, measure));
        let [what, counted] = terms(measure);
        is_worth_saying.then(|| {
            format!(
                "functions inside libraries and the interpreter are hidden{except}: {before} of {what} before, {after} \
                 after{counted}; {option} shows them"
            )
        })
    }

    fn is_worth_saying(self, total: i64, measure: Measure) -> bool {
        self.share(total, measure) >= LEAST
    }

    const fn except(self) -> &'static str {
        if self.costly == 0 { "" } else { ", except those with the highest self time" }
    }

    fn amount(self, total: i64, measure: Measure) -> String {
        #[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
        let self_cost = measure.text(self.self_cost as f64);
        format!("{:.1}% ({self_cost})", self.share(total, measure) * 100.0)
    }
}

fn caption(amount: &str, measure: Measure) -> String {
    let counted = if measure == Measure::Calls { "" } else { ", counted for callers" };
    format!("hidden inside libraries and the interpreter{counted}: {amount}; --all or all=True shows it")
}

/// Returns what is hidden, and where it is counted.
fn terms(measure: Measure) -> [&'static str; 2] {
    if measure == Measure::Calls { ["all calls", ""] } else { ["self", ", counted for their callers"] }
}

#[expect(clippy::cast_precision_loss, reason = "a count for display")]
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(functions: usize, self_cost: i64, costly: usize) -> Hidden {
        Hidden { functions, self_cost, costly }
    }

    #[test]
    fn the_hidden_share_is_stated() {
        let note = |hidden: Hidden| hidden.sentence(2_000_000_000, Measure::WallTime, "--all");
        assert_eq!(
            note(hidden(1234, 1_242_000_000, 0)).unwrap(),
            "1,234 functions inside libraries and the interpreter are hidden: 62.1% (1.24 s) of self, counted for their \
             callers; --all shows them"
        );
        let one = note(hidden(1, 1_000_000_000, 0)).unwrap();
        assert!(one.starts_with("1 function inside libraries and the interpreter is hidden: "));
        assert_eq!((note(hidden(0, 0, 0)), note(hidden(3, 19_000_000, 0))), (None, None));
        assert_eq!(hidden(3, 0, 0).sentence(0, Measure::WallTime, "--all"), None);
        assert_eq!(
            note(hidden(30, 500_000_000, 2)).unwrap(),
            "30 functions inside libraries and the interpreter are hidden, except those with the highest self time: 25.0% \
             (500 ms) of self, counted for their callers; --all shows them"
        );
    }

    #[test]
    fn hidden_calls_are_a_share_of_all_calls() {
        assert_eq!(
            hidden(240, 3_000, 0).sentence(1_000, Measure::Calls, "--all").unwrap(),
            "240 functions inside libraries and the interpreter are hidden: 75.0% (3,000) of all calls; --all shows them"
        );
    }

    #[test]
    fn the_hidden_shares_of_two_profiles_are_stated() {
        let note = |before, after| Hidden::sentence_of_both([(before, 1000), (after, 2000)], Measure::Samples, "--all");
        assert_eq!(
            note(hidden(0, 0, 0), hidden(2, 500, 0)).unwrap(),
            "functions inside libraries and the interpreter are hidden: 0.0% (0) of self before, 25.0% (500) after, counted \
             for their callers; --all shows them"
        );
        assert_eq!(note(hidden(1, 1, 0), hidden(1, 1, 0)), None);
    }
}
