//! The input and the output of a child process that resolves addresses. Both go through pipes, as text.

use std::fmt::Write;
use std::path::PathBuf;

use super::figures::Figures;

/// An address in a module's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) module: usize,
    pub(super) address: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) modules: Vec<PathBuf>,
    /// The first query to the new symbolizer: one address, or none.
    pub(super) first: Vec<Place>,
    /// The next query, which is then repeated.
    pub(super) next: Vec<Place>,
    /// The number of places in `next` that belong to each stack, if they form stacks.
    pub(super) depths: Vec<usize>,
}

/// The names of the functions at an address, innermost first; empty if nothing is known.
pub(super) type Chain = Vec<String>;

/// The names that a child process found, and their cost.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) figures: Figures,
    /// The names for each place in [`Job::next`].
    pub(super) chains: Vec<Chain>,
}

/// The separator between the names of a chain.
const SEPARATOR: char = '\u{1f}';

impl Job {
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for module in &self.modules {
            let _ = writeln!(text, "module {}", module.display());
        }
        for (word, places) in [("first", &self.first), ("next", &self.next)] {
            for place in places {
                let _ = writeln!(text, "{word} {} {:x}", place.module, place.address);
            }
        }
        for depth in &self.depths {
            let _ = writeln!(text, "depth {depth}");
        }
        text
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut job = Self::default();
        for line in text.lines() {
            let bad = || format!("not a line of a job: {line:?}");
            let (word, rest) = line.split_once(' ').ok_or_else(bad)?;
            match word {
                "module" => job.modules.push(rest.into()),
                "first" => job.first.push(place(rest).ok_or_else(bad)?),
                "next" => job.next.push(place(rest).ok_or_else(bad)?),
                "depth" => job.depths.push(rest.parse().map_err(|_| bad())?),
                _ => return Err(bad()),
            }
        }
        Ok(job)
    }
}

fn place(text: &str) -> Option<Place> {
    let (module, address) = text.split_once(' ')?;
    Some(Place { module: module.parse().ok()?, address: u64::from_str_radix(address, 16).ok()? })
}

impl Report {
    pub(super) fn to_text(&self) -> String {
        let mut text = self.figures.to_line();
        for chain in &self.chains {
            text.push('\n');
            text.push_str(&chain.join(&SEPARATOR.to_string()));
        }
        text.push('\n');
        text
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let figures = Figures::parse(first).ok_or_else(|| format!("failed: {first}"))?;
        Ok(Self { figures, chains: lines.map(chain).collect() })
    }
}

fn chain(line: &str) -> Chain {
    line.split(SEPARATOR).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_the_same_after_formatting_and_parsing() {
        let job = Job {
            modules: vec!["/lib/with space.so".into(), "/lib/b.so".into()],
            first: vec![Place { module: 1, address: 0xfff0 }],
            next: vec![Place { module: 0, address: 16 }, Place { module: 1, address: u64::MAX }],
            depths: vec![2, 0],
        };
        assert_eq!(Job::parse(&job.to_text()), Ok(job));
        assert!(Job::parse("next 1").is_err());
    }

    #[test]
    fn a_report_keeps_figures_and_empty_chains() {
        let figures = Figures { first_ms: 1.5, next_ms: 20.25, again_ms: None, peak_mb: 7.0 };
        let chains = vec![vec!["inner f(int)".to_owned(), "outer".to_owned()], vec![], vec!["g".to_owned()]];
        let report = Report { figures, chains };
        assert_eq!(Report::parse(&report.to_text()), Ok(report));
        assert_eq!(Report::parse("no such file\n"), Err("failed: no such file".to_owned()));
    }
}
