//! Random programs, compared with a simple model that counts like `cProfile`: to the nanosecond.

use std::collections::BTreeMap;
use std::thread;

use stackweave_recording::timing::{AnomalyCounts, Outcome, Timing, Token};
use stackweave_testkit::folder::Folder;
use stackweave_testkit::random::Random;

use super::{Numbers, Table, frame, stop_and_read, timing};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const THREADS: usize = 3;

/// The figures of a function, or of a pair of caller and callee.
#[derive(Clone, Copy, Default)]
struct Counter {
    numbers: Numbers,
    open: u32,
}

impl Counter {
    fn end(&mut self, self_time: i64, total: i64) {
        self.open -= 1;
        self.numbers[0] += 1;
        self.numbers[2] += self_time;
        if self.open == 0 {
            self.numbers[1] += 1;
            self.numbers[3] += total;
        }
    }
}

struct Call {
    name: &'static str,
    began: u64,
    inside: i64,
    token: Token,
}

/// The expected figures of one thread.
#[derive(Default)]
struct Model {
    functions: BTreeMap<String, Counter>,
    callers: BTreeMap<(String, String), Counter>,
    stack: Vec<Call>,
    anomalies: AnomalyCounts,
}

impl Model {
    fn begin(&mut self, name: &'static str, at: u64, token: Token) {
        self.functions.entry(name.to_owned()).or_default().open += 1;
        if let Some(caller) = self.stack.last() {
            self.callers.entry((caller.name.to_owned(), name.to_owned())).or_default().open += 1;
        }
        self.stack.push(Call { name, began: at, inside: 0, token });
    }

    fn end(&mut self, at: u64) {
        let Some(call) = self.stack.pop() else {
            self.anomalies.unmatched_pops += 1;
            return;
        };
        let total = i64::try_from(at - call.began).unwrap();
        let self_time = total - call.inside;
        self.functions.get_mut(call.name).unwrap().end(self_time, total);
        if let Some(caller) = self.stack.last_mut() {
            caller.inside += total;
            self.callers.get_mut(&(caller.name.to_owned(), call.name.to_owned())).unwrap().end(self_time, total);
        }
    }

    fn close(&mut self, token: Token, at: u64) -> bool {
        let Some(place) = self.stack.iter().position(|call| call.token == token) else {
            self.anomalies.lost_tokens += 1;
            return false;
        };
        self.anomalies.left_open += (self.stack.len() - place - 1) as u64;
        while self.stack.len() > place {
            self.end(at);
        }
        true
    }

    fn end_of_thread(&mut self, at: u64) {
        self.anomalies.left_open += self.stack.len() as u64;
        while !self.stack.is_empty() {
            self.end(at);
        }
    }
}

/// Runs one thread of a random program, and records it in both.
fn run(timing: &Timing, mut random: Random) -> Model {
    let (mut model, mut at, mut tokens) = (Model::default(), random.bits() % 1_000_000, Vec::new());
    for _ in 0..400 {
        at += random.bits() % 1_000;
        match random.below(10) {
            0..=4 if model.stack.len() < 12 => {
                let name = NAMES[random.below(NAMES.len())];
                let moment = timing.at(at);
                let token = match random.below(4) {
                    0 => moment.push_code(frame(name), 7, 1),
                    1 => moment.push_with(frame(name), b"{}"),
                    2 => moment.push_run(frame(name), b"{}"),
                    _ => moment.push(frame(name)),
                };
                model.begin(name, at, token);
                tokens.push(token);
            }
            9 if !tokens.is_empty() => {
                let token = tokens[tokens.len() - 1 - random.below(tokens.len().min(8))];
                assert_eq!(timing.at(at).close(token, Outcome::Failed, b""), model.close(token, at));
            }
            kind => {
                let outcome = if kind == 8 { Outcome::Failed } else { Outcome::Done };
                assert_eq!(timing.at(at).pop_with(outcome, b""), !model.stack.is_empty());
                model.end(at);
            }
        }
        assert_eq!(timing.depth(), model.stack.len());
    }
    model.end_of_thread(at);
    model
}

fn add(table: &mut Table, model: &Model) {
    let sum = |sum: &mut Numbers, entry: &Counter| {
        sum.iter_mut().zip(entry.numbers).for_each(|(sum, number)| *sum += number);
    };
    for (name, entry) in &model.functions {
        sum(table.functions.entry(name.clone()).or_default(), entry);
    }
    for (pair, entry) in &model.callers {
        sum(table.callers.entry(pair.clone()).or_default(), entry);
    }
}

#[test]
fn random_programs_have_the_figures_of_the_model() {
    for seed in 0..30 {
        println!("seed {seed}");
        let folder = Folder::new();
        let timing = timing(&folder);
        let mut expected = Table::default();
        let mut anomalies = AnomalyCounts::default();
        for thread in 0..THREADS {
            let random = Random::new(seed * 1_000 + thread as u64);
            let model = thread::scope(|scope| scope.spawn(|| run(&timing, random)).join().unwrap());
            add(&mut expected, &model);
            anomalies.unmatched_pops += model.anomalies.unmatched_pops;
            anomalies.left_open += model.anomalies.left_open;
            anomalies.lost_tokens += model.anomalies.lost_tokens;
        }
        assert!(
            anomalies.unmatched_pops > 0 && anomalies.left_open > 0 && anomalies.lost_tokens > 0,
            "{anomalies:?} prove little"
        );
        assert_eq!(timing.anomalies(), anomalies);
        assert_eq!(stop_and_read(&timing), expected);
    }
}
