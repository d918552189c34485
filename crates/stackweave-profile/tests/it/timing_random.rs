//! Random phases, compared with a plain list of them.

use std::collections::BTreeMap;

use stackweave_core::RawFrame;
use stackweave_profile::AggregateOptions;
use stackweave_tapes::phases::{PhaseTape, code};
use stackweave_tapes::span;
use stackweave_testkit::random::Random;

use crate::common::timing::{Costs, check_equations, edges, functions, name, phases, report, self_times};

const NAMES: [&str; 6] = ["a", "b", "c", "p", "q", "r"];

/// Returns a frame. The first half of the names have a file, the others have none.
fn frame(name: usize) -> RawFrame {
    if name < 3 { code(NAMES[name]) } else { span(NAMES[name]) }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum PhaseEnd {
    Done,
    Failed,
    LeftOpen,
    NoEnd,
}

/// One phase of the model.
#[derive(Clone, Debug)]
struct Phase {
    name: usize,
    is_run: bool,
    parent: Option<usize>,
    began: u64,
    ended: u64,
    how: PhaseEnd,
}

struct Model {
    phases: Vec<Phase>,
    open: [Vec<usize>; 3],
    now: u64,
}

impl Model {
    fn push(&mut self, tape: &mut PhaseTape, thread: usize, random: &mut Random) {
        let (name, is_run) = (random.below(NAMES.len()), random.below(5) == 0);
        let parent = self.open[thread].last().copied();
        self.open[thread].push(self.phases.len());
        self.phases.push(Phase { name, is_run, parent, began: self.now, ended: 0, how: PhaseEnd::NoEnd });
        if is_run {
            tape.push_run(self.now, frame(name), "{}");
        } else {
            tape.push(self.now, frame(name));
        }
    }

    fn pop(&mut self, tape: &mut PhaseTape, thread: usize, random: &mut Random) {
        let Some(index) = self.open[thread].pop() else { return };
        let how = [PhaseEnd::Done, PhaseEnd::Done, PhaseEnd::Failed, PhaseEnd::LeftOpen][random.below(4)];
        self.phases[index].ended = self.now;
        self.phases[index].how = how;
        match how {
            PhaseEnd::Failed => tape.fail(self.now, r#"{"error": "no"}"#),
            PhaseEnd::LeftOpen => tape.leave_open(self.now),
            PhaseEnd::Done | PhaseEnd::NoEnd => tape.pop(self.now),
        };
    }

    /// Cuts all phases to a time range; those outside of it are removed.
    fn cut(&self, start: u64, end: u64) -> Vec<(usize, Phase, u64)> {
        let all = self.phases.iter().enumerate();
        let is_inside = |phase: &Phase| phase.began < end && (phase.ended > start || phase.began >= start);
        all.filter(|(_, phase)| is_inside(phase))
            .map(|(index, phase)| (index, phase.clone(), phase.ended.min(end) - phase.began.max(start)))
            .collect()
    }

    fn ancestors(&self, of: usize) -> impl Iterator<Item = usize> {
        core::iter::successors(self.phases[of].parent, |index| self.phases[*index].parent)
    }
}

fn program(seed: u64) -> (Model, PhaseTape) {
    let mut random = Random::new(seed);
    let mut model = Model { phases: Vec::new(), open: [Vec::new(), Vec::new(), Vec::new()], now: 1 };
    let mut tape = PhaseTape::new();
    let mut last = [0; 3];
    for _ in 0..120 {
        model.now += random.below(9) as u64;
        let thread = random.below(3);
        tape.on_thread(u32::try_from(thread).unwrap() + 1);
        last[thread] = model.now;
        if random.below(9) < 5 {
            model.push(&mut tape, thread, &mut random);
        } else {
            model.pop(&mut tape, thread, &mut random);
            // A pop without an open phase is no event.
            if model.open[thread].is_empty() {
                tape.unmatched(model.now, span("unmatched pop"), &[]);
            }
        }
    }
    for (thread, open) in model.open.clone().iter().enumerate() {
        for index in open {
            model.phases[*index].ended = last[thread];
        }
    }
    (model, tape)
}

type Sums<K> = BTreeMap<K, Costs>;

fn naive(model: &Model, start: u64, end: u64) -> (Sums<String>, Sums<(String, String)>) {
    let (mut functions, mut edges): (Sums<String>, Sums<(String, String)>) = Default::default();
    let inside = model.cut(start, end);
    for (index, phase, time) in &inside {
        let children: u64 =
            inside.iter().filter(|(_, child, _)| child.parent == Some(*index)).map(|(.., time)| *time).sum();
        let (own, time) = ((time - children).cast_signed(), time.cast_signed());
        let add = |to: &mut Costs, is_primitive: bool| {
            to.0 += 1;
            to.1 += u64::from(is_primitive);
            to.2 += own;
            to.3 += if is_primitive { time } else { 0 };
            to.4 += time;
        };
        let of = |index: usize| model.phases[index].name;
        let is_primitive = model.ancestors(*index).all(|above| of(above) != phase.name);
        add(functions.entry(NAMES[phase.name].to_owned()).or_default(), is_primitive);
        let Some(parent) = phase.parent else { continue };
        let is_pair = |above: usize| {
            of(above) == phase.name && model.phases[above].parent.is_some_and(|over| of(over) == of(parent))
        };
        let is_primitive = !model.ancestors(*index).any(is_pair);
        let key = (NAMES[of(parent)].to_owned(), NAMES[phase.name].to_owned());
        add(edges.entry(key).or_default(), is_primitive);
    }
    (functions, edges)
}

fn check(model: &Model, tape: PhaseTape, range: Option<(u64, u64)>, seed: u64) {
    let (start, end) = range.unwrap_or((0, u64::MAX));
    let options = AggregateOptions { range: range.map(|(start, end)| start..end), ..AggregateOptions::default() };
    let report = report(&[tape.tape.process()], &options);
    check_equations(&report);
    let (naive_functions, naive_edges) = naive(model, start, end);
    assert_eq!(functions(&report), naive_functions.into_iter().collect::<Vec<_>>(), "seed {seed}");
    let naive_edges: Vec<_> = naive_edges.into_iter().map(|((from, to), costs)| (from, to, costs)).collect();
    assert_eq!(edges(&report), naive_edges, "seed {seed}");
    let inside = model.cut(start, end);
    for row in &report.rows {
        let of = |how: PhaseEnd| {
            let is_it = |(_, phase, _): &&(usize, Phase, u64)| {
                NAMES[phase.name] == name(&report, row.function) && phase.how == how
            };
            inside.iter().filter(is_it).count() as u64
        };
        assert_eq!((row.failed, row.left_open), (of(PhaseEnd::Failed), of(PhaseEnd::LeftOpen)), "seed {seed}");
        assert!(range.is_some() || row.unfinished == of(PhaseEnd::NoEnd), "seed {seed}");
    }
    check_runs(model, &report, &inside, seed);
}

fn check_runs(
    model: &Model,
    report: &stackweave_profile::timing::TimingReport,
    inside: &[(usize, Phase, u64)],
    seed: u64,
) {
    let runs: Vec<_> = inside.iter().filter(|(_, phase, _)| phase.is_run).collect();
    assert_eq!(report.runs.len(), runs.len(), "seed {seed}");
    let mut expected = Vec::new();
    for (index, phase, time) in &runs {
        let below: Vec<_> =
            inside.iter().filter(|(other, ..)| model.ancestors(*other).any(|above| above == *index)).collect();
        let mut sums: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
        for (other, inner, time) in below.iter().filter(|(_, inner, _)| inner.name >= 3) {
            let between = model.ancestors(*other).take_while(|above| above != index);
            let is_outermost = between.into_iter().all(|above| model.phases[above].name != inner.name);
            let sum = sums.entry(NAMES[inner.name].to_owned()).or_default();
            sum.0 += 1;
            sum.1 += if is_outermost { *time } else { 0 };
            // Without the nearest phases inside of it that have no file.
            let nearest = |index: usize| model.ancestors(index).find(|above| model.phases[*above].name >= 3);
            let is_inner =
                |(index, phase, _): &&(usize, Phase, u64)| phase.name >= 3 && nearest(*index) == Some(*other);
            sum.2 += time - inside.iter().filter(is_inner).map(|(.., time)| time).sum::<u64>();
        }
        let depth = |other: usize| model.ancestors(other).take_while(|above| above != index).count() + 1;
        let deepest = below.iter().map(|(other, ..)| depth(*other)).max().unwrap_or(0);
        let parent = model.ancestors(*index).find(|above| model.phases[*above].is_run);
        let parent = parent.map(|parent| model.phases[parent].began);
        let sums: Vec<_> = sums.into_iter().map(|(name, (calls, ns, own))| (name, calls, ns, own)).collect();
        expected.push((phase.began, NAMES[phase.name].to_owned(), *time, below.len() as u64, deepest, parent, sums));
    }
    let found = report.runs.iter().map(|run| {
        let parent = run.parent.map(|parent| report.runs[parent - 1].began_ns);
        let mut sums = phases(report, run);
        sums.sort();
        let sums = sums.into_iter().zip(self_times(report, run));
        let sums: Vec<_> = sums.map(|((name, calls, ns), (_, own))| (name, calls, ns, own)).collect();
        let what = name(report, run.function);
        (run.began_ns, what, run.duration_ns, run.phases_count, run.deepest, parent, sums)
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "seed {seed}");
}

#[test]
fn reports_equal_a_plain_list() {
    for seed in 0..150 {
        let (model, tape) = program(seed);
        check(&model, tape, None, seed);
    }
}

#[test]
fn reports_of_a_time_range_equal_a_plain_list() {
    for seed in 200..350 {
        let (model, tape) = program(seed);
        let mut random = Random::new(seed);
        let start = random.below(usize::try_from(model.now).unwrap()) as u64;
        let end = start + 1 + random.below(200) as u64;
        check(&model, tape, Some((start, end)), seed);
    }
}
