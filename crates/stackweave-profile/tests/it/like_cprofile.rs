//! The statistics equal those of Python's `cProfile`.

use std::collections::BTreeMap;
use std::process::Command;

use stackweave_profile::{AggregateOptions, CallStatistics, FunctionId, Profile, Statistics, View};
use stackweave_tapes::{Tape, span};
use stackweave_testkit::in_each_python;
use stackweave_testkit::pythons::Python;

use crate::common::recording::TapeExt as _;

const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/cprofile_oracle.py");
const PROGRAMS: usize = 120;

/// Calls, primitive calls, self and total time: of functions, and of pairs of caller and callee.
#[derive(Debug, Default, PartialEq, Eq)]
struct Table {
    functions: BTreeMap<String, [i64; 4]>,
    callers: BTreeMap<(String, String), [i64; 4]>,
}

impl Table {
    fn without_times(mut self) -> Self {
        self.functions.values_mut().chain(self.callers.values_mut()).for_each(|numbers| numbers[2..].fill(0));
        self
    }
}

fn numbers(statistics: CallStatistics) -> [i64; 4] {
    let count = |calls: u64| i64::try_from(calls).unwrap();
    [count(statistics.calls), count(statistics.primitive_calls), statistics.self_cost, statistics.total]
}

fn table_of(profile: &Profile) -> Table {
    let statistics = Statistics::of(profile);
    let name = |id: FunctionId| profile.functions().function(id).name.to_string();
    let functions = statistics.functions().map(|(id, cost)| (name(id), numbers(cost))).collect();
    let mut callers = BTreeMap::new();
    let mut inverted = BTreeMap::new();
    for (id, _) in statistics.functions() {
        let pair = |edge: &stackweave_profile::Edge| ((name(edge.caller), name(edge.callee)), numbers(edge.statistics));
        callers.extend(statistics.callers(id).iter().map(pair));
        inverted.extend(statistics.callees(id).iter().map(pair));
    }
    assert_eq!(callers, inverted);
    assert_eq!(callers.len(), statistics.edges().len());
    Table { functions, callers }
}

/// Reads the oracle's output for one program: the profile of its events, and its table.
fn read(program: &str) -> (Profile, Table) {
    let mut tape = Tape::new();
    let mut table = Table::default();
    for line in program.lines().skip(1) {
        let words: Vec<&str> = line.split(' ').collect();
        let four = |words: &[&str]| -> [i64; 4] { std::array::from_fn(|index| words[index].parse().unwrap()) };
        match words[0] {
            "b" => tape.begin((1, words[2].parse().unwrap()), span(&format!("f{}", words[1]))),
            "e" => tape.end((1, words[1].parse().unwrap())),
            "f" => drop(table.functions.insert(format!("f{}", words[1]), four(&words[2..]))),
            "c" => {
                let pair = (format!("f{}", words[1]), format!("f{}", words[2]));
                table.callers.insert(pair, four(&words[3..]));
            }
            _ => panic!("{line}"),
        }
    }
    (tape.profile(&AggregateOptions::default()), table)
}

fn compare(python: &Python) {
    let output = Command::new(&python.executable).args(["-I", ORACLE, &PROGRAMS.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let programs: Vec<&str> = text.split("program ").skip(1).collect();
    assert_eq!(programs.len(), PROGRAMS);
    // From 3.14 on, cProfile measures C code separately.
    let counts_c_code = python.minor >= 14;
    let mut recursive = 0;
    for program in programs {
        let (profile, table) = read(program);
        let context = format!("Python {}, seed {}", python.version, program.lines().next().unwrap());
        let table = if counts_c_code { table.without_times() } else { table };
        let ours =
            |profile: &Profile| if counts_c_code { table_of(profile).without_times() } else { table_of(profile) };
        assert_eq!(ours(&profile), table, "{context}");
        recursive += table.callers.values().filter(|numbers| numbers[0] != numbers[1]).count();
        // Nothing is hidden in a program without interpreter and libraries.
        assert_eq!(ours(&profile.view(&View::default())), table, "{context}");
    }
    assert!(recursive > 100, "{recursive} recursive edges prove little");
}

in_each_python!(random_programs_have_the_numbers_of_cprofile, compare);

/// f calls itself through g: computed by hand.
#[test]
fn recursion_counts_cumulative_time_once() {
    let mut tape = Tape::new();
    let (f, g) = (span("f"), span("g"));
    for (ticks, begins) in [(0, Some(f)), (1, Some(g)), (3, Some(f)), (6, Some(g)), (10, None), (15, None), (21, None)]
    {
        match begins {
            Some(frame) => tape.begin((1, ticks), frame),
            None => tape.end((1, ticks)),
        }
    }
    tape.end((1, 28));
    let table = table_of(&tape.profile(&AggregateOptions::default()));
    // f: 0..28 and 3..15, self 1 + 7 and 3 + 5. g: 1..21 and 6..10, self 2 + 6 and 4.
    let functions = [("f".to_owned(), [2, 1, 16, 28]), ("g".to_owned(), [2, 1, 12, 20])];
    assert_eq!(table.functions, BTreeMap::from(functions));
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let callers = [(pair("f", "g"), [2, 1, 12, 20]), (pair("g", "f"), [1, 1, 8, 12])];
    assert_eq!(table.callers, BTreeMap::from(callers));
}
