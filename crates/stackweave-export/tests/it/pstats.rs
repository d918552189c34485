//! `.prof` files are equal to those of `cProfile`, and its readers read them.

use std::process::Command;

use serde_json::Value;
use stackweave_export::{ExportError, ExportOptions, Format, export};
use stackweave_profile::{AggregateOptions, Measure, Statistics, aggregate};
use stackweave_recording::Recording;
use stackweave_tapes::Tape;
use stackweave_testkit::folder::Folder;
use stackweave_testkit::in_each_python;
use stackweave_testkit::pythons::Python;

use crate::common::examples::{STATISTICS, example, example_with_ticks, nasty, nasty_names, random};
use crate::common::exported;
use crate::common::readers::{reader_script, run, script};

const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../stackweave-profile/tests/python/cprofile_oracle.py");
const PROGRAMS: u32 = 60;

fn measured(measure: Measure) -> ExportOptions<'static> {
    let part = AggregateOptions { measure: Some(measure), ..AggregateOptions::default() };
    ExportOptions { part, ..ExportOptions::default() }
}

/// Returns the output of a reader of an export. `None` if the readers are not installed.
fn read(recording: &Recording, options: &ExportOptions<'_>, reader: &str) -> Option<Value> {
    let folder = Folder::new();
    let path = folder.write("out.prof", &exported(recording, Format::Pstats, options));
    let output = run(reader_script("pstats_readers.py")?.arg(reader).arg(path));
    Some(serde_json::from_str(&output).unwrap())
}

fn seconds(nanoseconds: i64) -> f64 {
    f64::from(i32::try_from(nanoseconds).unwrap()) / 1e9
}

#[test]
fn the_example_has_its_figures() {
    let Some(output) = read(&example().recording(), &ExportOptions::default(), "pstats") else { return };
    let functions = output["functions"].as_array().unwrap();
    let find = |name: &str| functions.iter().find(|function| function[2] == name).unwrap();
    assert_eq!(functions.len(), STATISTICS.len());
    for (name, calls, primitive, self_cost, total) in STATISTICS {
        let found = find(name);
        let numbers = [&found[3], &found[4]].map(|number| number.as_u64().unwrap());
        let times = [&found[5], &found[6]].map(|number| number.as_f64().unwrap());
        assert_eq!((numbers, times), ([primitive, calls], [seconds(self_cost), seconds(total)]), "{name}");
    }
    let location = |name: &str| (find(name)[0].as_str().unwrap(), find(name)[1].as_u64().unwrap());
    assert_eq!([location("Model.step"), location("load batch")], [("/app/model.py", 10), ("~", 0)]);
    assert_eq!(location("inner").0, "/src/kernel.h");
    let callers = find("fib")[7].as_array().unwrap();
    let expected = serde_json::json!([
        ["/app/model.py", 10, "Model.step", 1, 1, seconds(500), seconds(800)],
        ["/app/fib.py", 3, "fib", 1, 1, seconds(300), seconds(300)],
    ]);
    assert_eq!(callers.len(), 2);
    assert!(expected.as_array().unwrap().iter().all(|caller| callers.contains(caller)), "{callers:?}");
    assert!(
        (output["total"].as_f64().unwrap() - 4e-6).abs() < 1e-15 && output["calls"] == 10 && output["primitive"] == 9
    );
    assert!((output["doubled"].as_f64().unwrap() - 8e-6).abs() < 1e-15);
    let text = output["text"].as_str().unwrap();
    assert!(
        text.contains("10 function calls (9 primitive calls)") && text.contains("model.py:10(Model.step)"),
        "{text}"
    );
}

#[test]
fn programs_beside_pstats_read_it() {
    let recording = example_with_ticks(1000).recording();
    let read = |reader: &str| read(&recording, &ExportOptions::default(), reader);
    let Some(snakeviz) = read("snakeviz") else { return };
    assert_eq!(snakeviz["rows"].as_array().unwrap().len(), STATISTICS.len());
    let main = &snakeviz["functions"]["/app/train.py:1(main)"];
    assert_eq!(main["stats"], serde_json::json!([1, 1, 0.6, 3.0]));
    assert!(main["children"].get("/app/model.py:10(Model.step)").is_some());
    let tuna = read("tuna").unwrap().to_string();
    assert!(tuna.contains("/app/train.py::1::main") && tuna.contains("/app/model.py::10::Model.step"), "{tuna}");
    let dot = read("gprof2dot").unwrap();
    let dot = dot.as_str().unwrap();
    assert!(dot.contains("digraph") && dot.contains("model:10:Model.step") && dot.contains("-> "), "{dot}");
}

#[test]
fn nasty_names_are_read_back_unchanged() {
    let recording = nasty().recording();
    let Some(output) = read(&recording, &ExportOptions::default(), "pstats") else { return };
    let functions = output["functions"].as_array().unwrap();
    assert_eq!(functions.len(), 2 * nasty_names().len() + 2);
    for name in nasty_names() {
        let file = format!("/tmp/{name}.py");
        let is_there = |file: &str, line: u64| {
            functions.iter().any(|function| function[0] == file && function[1] == line && function[2] == name.as_str())
        };
        assert!(is_there(&file, 3) && is_there("~", 0), "{name:?}");
    }
    for reader in ["snakeviz", "gprof2dot"] {
        read(&recording, &ExportOptions::default(), reader).unwrap();
    }
}

#[test]
fn every_measure_agrees_with_the_profile() {
    let recording = random(3, 4000).recording();
    for measure in Measure::ALL {
        let options = measured(measure);
        let profile = aggregate(recording.processes(), &options.part, None, &mut |_| {}).unwrap().merged();
        let unit = if measure == Measure::WallTime { 1e9 } else { 1.0 };
        let Some(output) = read(&recording, &options, "pstats") else { return };
        let total = output["total"].as_f64().unwrap() * unit;
        assert!((total - f64::from(i32::try_from(profile.total()).unwrap())).abs() < 0.5, "{measure}: {total}");
        let root = profile.tree().nodes()[0].cost.calls;
        let calls: u64 = Statistics::of(&profile).functions().map(|(_, cost)| cost.calls).sum();
        assert_eq!(output["calls"].as_u64().unwrap(), calls + root, "{measure}");
        for reader in ["snakeviz", "gprof2dot"] {
            read(&recording, &options, reader).unwrap();
        }
    }
}

/// Returns the recordings of the programs that the oracle printed.
fn tapes(events: &str) -> Vec<Tape> {
    let tape = |program: &str| {
        let mut tape = Tape::new();
        let functions: Vec<u32> = (0..5).map(|number| tape.python(&format!("f{number}"), "<string>", 2)).collect();
        for line in program.lines().skip(1) {
            let words: Vec<&str> = line.split(' ').collect();
            match words[0] {
                "b" => {
                    let function = functions[words[1].parse::<usize>().unwrap()];
                    tape.begin((1, words[2].parse().unwrap()), Tape::at(function, 3));
                }
                _ => tape.end((1, words[1].parse().unwrap())),
            }
        }
        tape
    };
    events.split("program ").skip(1).map(tape).collect()
}

fn compare_with_cprofile(python: &Python) {
    let folder = Folder::new();
    let oracle = |action: &str| {
        let mut command = Command::new(&python.executable);
        command
            .arg("-I")
            .arg(script("pstats_oracle.py"))
            .args([ORACLE, action, &PROGRAMS.to_string()])
            .arg(folder.path());
        run(&mut command)
    };
    for (seed, tape) in tapes(&oracle("record")).into_iter().enumerate() {
        folder.write(
            &format!("{seed}.ours.prof"),
            &exported(&tape.recording(), Format::Pstats, &ExportOptions::default()),
        );
    }
    oracle("compare");
}

in_each_python!(random_programs_have_the_dumps_of_cprofile, compare_with_cprofile);

#[test]
fn an_empty_recording_is_refused() {
    let folder = Folder::new();
    let path = folder.file("out.prof");
    let recording = Tape::new().recording();
    let done = export(&recording, Format::Pstats, &path, &ExportOptions::default(), (None, &mut |_| {}));
    assert!(matches!(done, Err(ExportError::Unsupported(_))) && folder.names().is_empty(), "{done:?}");
}
