//! The extent to which the symbolizer and an oracle agree.

use std::collections::BTreeMap;
use std::fmt;

use super::SymbolizedFrame;
use super::comparison::{Comparison, Difference};
use super::truth::Truth;

/// The number of examples for each kind of difference, and the length of the start and the end of each that is
/// shown.
const EXAMPLES: usize = 3;
const SHOWN: usize = 120;

/// A comparison of the results for many addresses.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    name: String,
    total: usize,
    agreed: usize,
    under_another_name: usize,
    with_column: usize,
    left_mangled: usize,
    kinds: BTreeMap<Difference, (usize, Vec<String>)>,
}

impl Agreement {
    /// Compares `ours` with the truth. Without `lines`, compares only the outermost names.
    ///
    /// # Panics
    ///
    /// Panics if there is not one result for each address.
    pub fn of(name: &str, ours: &[Vec<SymbolizedFrame>], truth: &Truth, lines: bool) -> Self {
        assert_eq!(ours.len(), truth.addresses.len(), "one answer for each address");
        let mut agreement = Self { name: name.to_owned(), total: ours.len(), ..Self::default() };
        let mut comparison = Comparison::new(lines);
        for ((address, ours), expected) in truth.addresses.iter().zip(ours).zip(&truth.answers) {
            let found = comparison.first_difference(ours, expected).filter(|_| {
                let renamed = truth.other_names.renamed(*address, ours, expected);
                let is_same = renamed.is_some_and(|ours| comparison.first_difference(&ours, expected).is_none());
                agreement.under_another_name += usize::from(is_same);
                !is_same
            });
            let Some((difference, frame)) = found else {
                agreement.agreed += 1;
                agreement.left_mangled += usize::from(ours.iter().any(is_mangled));
                let columns = |places: &[SymbolizedFrame]| places.iter().map(|place| place.column).collect::<Vec<_>>();
                agreement.with_column += usize::from(columns(ours) == columns(expected));
                continue;
            };
            let (count, examples) = agreement.kinds.entry(difference).or_default();
            *count += 1;
            // Spread the examples over the file: neighbours often differ for the same reason.
            if count.is_power_of_two() {
                examples.push(example(*address, frame, ours, expected));
            }
        }
        agreement
    }

    /// Returns the percentage of addresses with the same whole chain of names, files and lines.
    pub fn percent(&self) -> f64 {
        percent(self.agreed, self.total)
    }

    /// Returns the name of what was compared.
    pub fn name(&self) -> &str {
        &self.name
    }
}

#[expect(clippy::cast_precision_loss, reason = "there are not that many addresses")]
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

fn is_mangled(place: &SymbolizedFrame) -> bool {
    place.function.as_ref().is_some_and(|name| name.starts_with("_Z") || name.starts_with("_R"))
}

fn example(address: u64, frame: usize, ours: &[SymbolizedFrame], expected: &[SymbolizedFrame]) -> String {
    let show = |places: &[SymbolizedFrame]| {
        let place = places.get(frame).map_or_else(|| "nothing".to_owned(), SymbolizedFrame::to_string);
        let (length, depth) = (place.chars().count(), places.len());
        let end: String = place.chars().skip(length.saturating_sub(SHOWN)).collect();
        let start: String = place.chars().take(SHOWN).collect();
        let place = if length > 2 * SHOWN { format!("{start} ... {end}") } else { place };
        format!("{place} (frame {frame} of {depth})")
    };
    format!("{address:#x}\n      ours   {}\n      expected {}", show(ours), show(expected))
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = percent(self.with_column, self.agreed);
        write!(f, "{}: {:.2} % of {} addresses agree", self.name, self.percent(), self.total)?;
        write!(f, " (columns too in {columns:.2} % of those")?;
        write!(f, ", {} under another name of the same code", self.under_another_name)?;
        write!(f, ", {} with names that neither demangles)", self.left_mangled)?;
        for (kind, (count, examples)) in &self.kinds {
            write!(f, "\n  {kind:?}: {count}")?;
            for example in examples.iter().rev().take(EXAMPLES) {
                write!(f, "\n    {example}")?;
            }
        }
        Ok(())
    }
}
