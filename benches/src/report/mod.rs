//! The results, and the two forms in which the program writes them.

pub(crate) mod json;
pub(crate) mod table;

/// One thing measured with every contender; the first is ours.
#[derive(Debug)]
pub(crate) struct Case {
    /// The area and the kind of measurement: `native/same-stack`.
    pub(crate) bench: &'static str,
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) peer: &'static str,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// A cost: less is better.
    Measured { cost: f64, frames: Option<usize> },
    /// The reason why there is no figure.
    Absent(String),
}

impl Outcome {
    pub(crate) fn cost(&self) -> Option<f64> {
        match self {
            Self::Measured { cost, .. } => Some(*cost),
            Self::Absent(_) => None,
        }
    }
}

/// One comparison, as it goes to the rows file.
#[derive(Debug, PartialEq)]
pub(crate) struct Row<'a> {
    pub(crate) bench: &'a str,
    pub(crate) case: &'a str,
    pub(crate) peer: &'a str,
    pub(crate) ours: f64,
    pub(crate) peer_cost: f64,
    pub(crate) unit: &'a str,
    /// The peer's cost divided by ours. Above 1, ours is cheaper.
    pub(crate) ratio: f64,
}

impl Case {
    /// Returns the area, which determines the peers.
    pub(crate) fn area(&self) -> &str {
        self.bench.split('/').next().unwrap_or_default()
    }

    /// Returns the entries of the peers, without ours.
    pub(crate) fn peers(&self) -> &[Entry] {
        self.entries.get(1..).unwrap_or_default()
    }

    pub(crate) fn ours(&self) -> Option<f64> {
        self.entries.first().and_then(|entry| entry.outcome.cost())
    }

    /// Returns the cost of `peer` divided by our cost. Returns `None` if either figure is missing or
    /// not above zero: the difference of two timings can be zero or negative.
    pub(crate) fn ratio(&self, peer: &Outcome) -> Option<f64> {
        let (ours, of_peer) = (self.ours()?, peer.cost()?);
        (ours > 0.0 && of_peer > 0.0).then(|| of_peer / ours)
    }

    /// Returns a row for each peer that was measured beside ours.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.peers().iter().filter_map(|entry| {
            Some(Row {
                bench: self.bench,
                case: &self.name,
                peer: entry.peer,
                ours: self.ours()?,
                peer_cost: entry.outcome.cost()?,
                unit: self.unit,
                ratio: self.ratio(&entry.outcome)?,
            })
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn case(costs: &[(&'static str, Option<f64>)]) -> Case {
        let outcome = |cost: Option<f64>| match cost {
            Some(cost) => Outcome::Measured { cost, frames: Some(10) },
            None => Outcome::Absent("not installed".to_owned()),
        };
        let entries = costs.iter().map(|&(peer, cost)| Entry { peer, outcome: outcome(cost) }).collect();
        Case { bench: "native/same-stack", name: "nofp 10".to_owned(), unit: "ns", entries }
    }

    #[test]
    fn a_ratio_above_one_means_that_ours_is_cheaper() {
        let case = case(&[("ours", Some(50.0)), ("slow", Some(200.0)), ("fast", Some(25.0))]);
        let ratios = case.rows().map(|row| (row.peer, row.ratio)).collect::<Vec<_>>();
        assert_eq!(ratios, [("slow", 4.0), ("fast", 0.5)]);
    }

    #[test]
    fn what_was_not_measured_has_no_row() {
        assert_eq!(case(&[("ours", Some(50.0)), ("absent", None)]).rows().count(), 0);
        assert_eq!(case(&[("ours", None), ("there", Some(1.0))]).rows().count(), 0);
        assert_eq!(case(&[("ours", Some(-1.0)), ("there", Some(1.0))]).rows().count(), 0);
        assert_eq!(case(&[]).rows().count(), 0);
    }
}
