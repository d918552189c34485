//! Perfetto's traces, decoded with Perfetto's own message definitions.

use serde_json::{Value, json};
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::AggregateOptions;
use stackweave_recording::Recording;
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::{Tape, recording_of, span};
use stackweave_testkit::folder::Folder;

use crate::common::examples::{TREE, example, nasty, random};
use crate::common::readers::{reader_script, run};
use crate::common::trees::{Tree, printed, profiled};

fn read(recording: &Recording, part: AggregateOptions) -> Option<Value> {
    let folder = Folder::new();
    let path = folder.file("out.pftrace");
    let options = ExportOptions { part, ..ExportOptions::default() };
    export(recording, Format::Perfetto, &path, &options, (None, &mut |_| {})).expect("it can be written");
    let output = run(reader_script("read_perfetto.py")?.arg(&path));
    Some(serde_json::from_str(&output).expect("the reader prints JSON"))
}

fn read_all(recording: &Recording) -> Option<Value> {
    read(recording, AggregateOptions::default())
}

#[test]
fn the_tree_is_that_of_the_profile() {
    let Some(seen) = read_all(&example().recording()) else { return };
    let expected: Tree = TREE
        .iter()
        .map(|(path, calls, self_cost, total)| {
            (path.iter().map(ToString::to_string).collect(), (*calls, *self_cost, *total))
        })
        .collect();
    assert_eq!(printed(&seen["tree"]), expected);
    assert_eq!(seen["processes"], json!([[4242, "python3 train.py", ["machine, Python 3.13.0"]]]));
    assert_eq!(seen["args"]["load batch"], json!([{"size": 32}, null]));
    assert_eq!(seen["args"]["fib"], json!([{}, ["/app/fib.py", 3]]));
    assert_eq!((&seen["clocks"]["1"], &seen["unfinished"]), (&json!(1_700_000_000_123_456_789_u64), &json!(0)));
}

#[test]
fn samples_instants_and_counters_are_there() {
    let Some(seen) = read_all(&example().recording()) else { return };
    let python = |name: &str, file: &str, line: u32| json!([name, file, line, "python", ""]);
    let native = |name: &str, file: &str, line: u32| json!([name, file, line, "opt/lib/libkernel.so", "ab".repeat(20)]);
    let step = [python("main", "/app/train.py", 3), python("Model.step", "/app/model.py", 12)];
    let kernel = [native("outer", "/src/kernel.c", 42), native("inner", "/src/kernel.h", 5)];
    let instants = json!([
        ["worker", 600, "sample", [python("fib", "/app/fib.py", 5)], {"weight": 2}],
        ["main", 1450, "checkpoint", step, {}],
        ["main", 1700, "sample", [&step[0], &step[1], &kernel[0], &kernel[1]], {"weight": 3}],
        ["main", 2700, "saved", [], {"path": "a\"b", "epoch": 1}],
    ]);
    assert_eq!(seen["instants"], instants);
    let of = |name: &str| -> Vec<(u64, f64)> {
        let counters = seen["counters"].as_array().unwrap().iter().filter(|counter| counter[0] == name);
        counters.map(|counter| (counter[1].as_u64().unwrap(), counter[2].as_f64().unwrap())).collect()
    };
    assert_eq!(of("queue length"), [(50, 1.0), (1050, 2.5)]);
    assert_eq!(of("allocated bytes"), [(150, 4096.0), (400, 4196.0), (1600, 4224.0), (1950, 128.0)]);
}

#[test]
fn every_name_is_read_back_unchanged() {
    let recording = nasty().recording();
    let Some(seen) = read_all(&recording) else { return };
    assert_eq!(printed(&seen["tree"]), profiled(&recording, &AggregateOptions::default()));
}

#[test]
fn random_recordings_agree_with_their_profiles() {
    for seed in 11..13 {
        let recording = random(seed, 20_000).recording();
        let Some(seen) = read_all(&recording) else { return };
        assert_eq!(printed(&seen["tree"]), profiled(&recording, &AggregateOptions::default()));
        let part = AggregateOptions {
            range: Some(2_000_000..6_000_000),
            threads: vec!["main".to_owned(), "worker 2".to_owned()],
            ..AggregateOptions::default()
        };
        let seen = read(&recording, part.clone()).unwrap();
        assert_eq!(printed(&seen["tree"]), profiled(&recording, &part));
    }
}

#[test]
fn details_keep_their_types_and_processes_stay_separate() {
    let tape = |host: &str, ticks| {
        let mut tape = Tape::started(&ProcessStart { pid: 9, host: host.to_owned(), ..ProcessStart::default() });
        tape.thread(1, 9, host);
        tape.begin((1, 10), span("open"));
        let details = r#"{"a": [1, -2, 1.5, true, null], "b": {"c": {"d": "e"}}, "f": 18446744073709551615}"#;
        tape.instant_with((1, ticks), span("last"), &[], details);
        tape
    };
    let Some(seen) = read_all(&recording_of(vec![tape("one", 40), tape("two", 50)])) else { return };
    let expected = json!({"a": [1, -2, 1.5, true, "null"], "b": {"c": {"d": "e"}}, "f": u64::MAX});
    assert_eq!(seen["instants"], json!([["one", 40, "last", [], expected], ["two", 50, "last", [], expected]]));
    assert_eq!(seen["unfinished"], 2);
    assert_eq!(seen["processes"], json!([[9, "process 9", ["one"]], [4_194_304, "process 9", ["two"]]]));
}
