//! Deep recursion: the size of exports is linear in the depth, and they stay correct where stacks are shortened.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use stackweave_export::{ExportOptions, Format};
use stackweave_profile::{CallStatistics, FunctionId, Statistics, aggregate};
use stackweave_recording::Recording;
use stackweave_tapes::{Tape, span};
use stackweave_testkit::folder::Folder;

use crate::common::exported;
use crate::common::readers::{reader_script, run};

/// Records two functions that call each other, each with self time. One call in the middle is of another function, and
/// so is the innermost one.
fn recursion(depth: u64) -> Recording {
    let mut tape = Tape::new();
    tape.thread(1, 1, "main");
    for at in 0..depth {
        let name = match at {
            _ if at == depth - 1 => "leaf",
            _ if at == depth / 2 => "once",
            _ if at % 2 == 0 => "even",
            _ => "unusual",
        };
        tape.begin((1, at * 10), span(name));
    }
    for at in 0..depth {
        tape.end((1, (depth + at) * 10));
    }
    tape.recording()
}

/// The formats whose size is linear in the depth. The others list whole stacks, and are stopped by their limits.
const LINEAR: [Format; 8] = [
    Format::Json,
    Format::Speedscope,
    Format::Pprof,
    Format::Chrome,
    Format::Perfetto,
    Format::Firefox,
    Format::Pstats,
    Format::Report,
];

#[test]
fn twice_the_depth_has_twice_the_size() {
    let recordings = [recursion(20_000), recursion(40_000)];
    for format in LINEAR {
        let [half, whole] = recordings.each_ref().map(|of| exported(of, format, &ExportOptions::default()).len());
        assert!(whole < 2 * half + half / 4, "{format}: {half} and {whole} bytes");
    }
}

/// Returns calls, self and total time of each function, counted like pprof: a function counts once in a sample.
#[test]
fn pprof_has_the_costs_of_functions_in_deep_recursion() {
    let recording = recursion(5_000);
    let folder = Folder::new();
    let path = folder.write("out.pb.gz", &exported(&recording, Format::Pprof, &ExportOptions::default()));
    let Some(mut command) = reader_script("pprof_reader.py") else { return };
    let read: Value = serde_json::from_str(&run(command.arg(path))).unwrap();
    let mut found: BTreeMap<String, (i64, i64, i64)> = BTreeMap::new();
    for sample in read["samples"].as_array().unwrap() {
        let stack = sample["stack"].as_array().unwrap().iter();
        let names: Vec<&str> = stack.map(|location| location["lines"][0][0].as_str().unwrap()).collect();
        let [self_cost, calls] = [0, 1].map(|column| sample["values"][column].as_i64().unwrap());
        let innermost = found.entry(names[0].to_owned()).or_default();
        (innermost.0, innermost.1) = (innermost.0 + calls, innermost.1 + self_cost);
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            found.entry(name.to_owned()).or_default().2 += self_cost;
        }
    }
    let options = ExportOptions::default();
    let profile = aggregate(recording.processes(), &options.part, None, &mut |_| {}).unwrap().merged();
    let row = |(id, row): (FunctionId, CallStatistics)| {
        let calls = i64::try_from(row.calls).unwrap();
        (profile.functions().function(id).full_name().to_string(), (calls, row.self_cost, row.total))
    };
    let expected: BTreeMap<String, (i64, i64, i64)> = Statistics::of(&profile).functions().map(row).collect();
    assert_eq!(found, expected);
}
