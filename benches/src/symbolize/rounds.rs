//! The parent's side: it runs each symbolizer in a new process per round, in turns, and computes medians and agreement.

use std::env;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use super::agreement;
use super::contenders::{self, Contender};
use super::figures::Figures;
use super::job::{Chain, Job, Report};
use crate::options::{Effort, SYMBOLIZE};
use crate::report::{Entry, Outcome};
use crate::statistics::median;

/// The result of one contender.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) name: &'static str,
    pub(super) figures: Result<Figures, String>,
    /// The share of the addresses for which it names the same functions as the judge.
    pub(super) agreement: f64,
}

impl Taken {
    /// Returns an entry with one of the figures, or the reason why there is none to compare.
    pub(super) fn entry(&self, unit: &str, pick: impl Fn(&Figures) -> Option<f64>) -> Entry {
        let outcome = match self.figures.as_ref().map(pick) {
            Err(why) => Outcome::Absent(why.clone()),
            Ok(None) => Outcome::Absent("n/a: keeps no answers".to_owned()),
            Ok(Some(cost)) if self.agreement < agreement::ENOUGH => {
                let percent = self.agreement * 100.0;
                Outcome::Absent(format!("wrong: {percent:.0} % of the addresses named right, in {cost:.2} {unit}"))
            }
            Ok(Some(cost)) => Outcome::Measured { cost, frames: None },
        };
        Entry { peer: self.name, outcome }
    }
}

/// The results of all contenders, and the names that count as correct.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) taken: Vec<Taken>,
    pub(super) judge: Vec<Chain>,
}

pub(super) fn measure(job: &Job, contenders: &[Contender], effort: Effort) -> io::Result<Round> {
    let absences = contenders.iter().map(|contender| (contender.version)().err()).collect::<Vec<_>>();
    let mut reports = vec![Vec::new(); contenders.len()];
    for round in 0..effort.pick(3, 5) {
        for ((contender, absence), reports) in contenders.iter().zip(&absences).zip(&mut reports) {
            let skipped = contender.is_slow && round >= effort.pick(1, 3);
            match absence {
                Some(why) if round == 0 => reports.push(Err(why.clone())),
                None if !skipped => reports.push(in_new_process(contender, job)?),
                _ => {}
            }
        }
    }
    let judge = judge(contenders, &reports);
    let taken = contenders.iter().zip(&reports).map(|(contender, reports)| Taken {
        name: contender.name,
        figures: medians(reports),
        agreement: reports.iter().flatten().next().map_or(0.0, |report| agreement::of_chains(&report.chains, &judge)),
    });
    let taken = taken.collect::<Vec<_>>();
    writeln!(io::stderr(), "  names that agree with the judge: {}", agreements(&taken))?;
    Ok(Round { taken, judge })
}

fn agreements(taken: &[Taken]) -> String {
    let measured = taken.iter().filter(|taken| taken.figures.is_ok());
    let words = measured.map(|taken| format!("{} {:.1} %", taken.name, taken.agreement * 100.0));
    words.collect::<Vec<_>>().join(", ")
}

fn in_new_process(contender: &Contender, job: &Job) -> io::Result<Result<Report, String>> {
    let mut command = Command::new(env::current_exe()?);
    let mut child = command.args([SYMBOLIZE, contender.name]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(job.to_text().as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Ok(Err(format!("failed: {}", output.status)));
    }
    let report = Report::parse(&String::from_utf8_lossy(&output.stdout));
    Ok(report.and_then(|report| {
        let (answers, addresses) = (report.chains.len(), job.next.len());
        if answers == addresses { Ok(report) } else { Err(format!("failed: {answers} answers for {addresses}")) }
    }))
}

type Reports = Vec<Result<Report, String>>;

/// Returns the names from the judge, or from the majority if there is no judge.
fn judge(contenders: &[Contender], reports: &[Reports]) -> Vec<Chain> {
    let firsts = contenders.iter().zip(reports).filter_map(|(contender, reports)| {
        let report = reports.iter().flatten().next()?;
        Some((contender.name, report.chains.as_slice()))
    });
    let firsts = firsts.collect::<Vec<_>>();
    if let Some((_, chains)) = firsts.iter().find(|(name, _)| *name == contenders::JUDGE) {
        return chains.to_vec();
    }
    agreement::majority(&firsts.iter().map(|(_, chains)| *chains).collect::<Vec<_>>())
}

fn medians(reports: &Reports) -> Result<Figures, String> {
    if let Some(why) = reports.iter().find_map(|report| report.as_ref().err()) {
        return Err(why.clone());
    }
    let figures = reports.iter().flatten().map(|report| report.figures).collect::<Vec<_>>();
    median_of(&figures).ok_or_else(|| "not sampled".to_owned())
}

/// Returns the median of each figure.
pub(super) fn median_of(figures: &[Figures]) -> Option<Figures> {
    let middle = |pick: fn(&Figures) -> f64| median(&figures.iter().map(pick).collect::<Vec<_>>());
    let again = figures.iter().filter_map(|figures| figures.again_ms).collect::<Vec<_>>();
    Some(Figures {
        first_ms: middle(|figures| figures.first_ms)?,
        next_ms: middle(|figures| figures.next_ms)?,
        again_ms: median(&again),
        peak_mb: middle(|figures| figures.peak_mb)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(agreement: f64, again_ms: Option<f64>) -> Taken {
        let figures = Figures { first_ms: 1.0, next_ms: 2.0, again_ms, peak_mb: 3.0 };
        Taken { name: "peer", figures: Ok(figures), agreement }
    }

    #[test]
    fn a_contender_with_wrong_names_is_not_compared() {
        let right = taken(0.96, None).entry("ms", |figures| Some(figures.next_ms));
        assert_eq!(right.outcome.cost(), Some(2.0));
        let wrong = taken(0.5, None).entry("ms", |figures| Some(figures.next_ms));
        let why = "wrong: 50 % of the addresses named right, in 2.00 ms".to_owned();
        assert_eq!(wrong.outcome, Outcome::Absent(why));
        assert_eq!(taken(1.0, None).entry("ms", |figures| figures.again_ms).outcome.cost(), None);
    }

    #[test]
    fn each_figure_has_its_own_median() {
        let figure = |first_ms, peak_mb| Figures { first_ms, next_ms: 0.0, again_ms: None, peak_mb };
        let median = median_of(&[figure(1.0, 30.0), figure(3.0, 10.0), figure(2.0, 20.0)]);
        assert_eq!(median, Some(Figures { first_ms: 2.0, next_ms: 0.0, again_ms: None, peak_mb: 20.0 }));
    }
}
