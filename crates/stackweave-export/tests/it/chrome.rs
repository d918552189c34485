//! Chrome's trace events, read strictly and by viztracer.

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
use crate::common::{assert_golden, exported_text};

/// Returns what the reader found in an export. `None` if the readers are not installed.
fn read(recording: &Recording, name: &str, part: AggregateOptions) -> Option<Value> {
    let folder = Folder::new();
    let path = folder.file(name);
    let options = ExportOptions { part, ..ExportOptions::default() };
    export(recording, Format::Chrome, &path, &options, (None, &mut |_| {})).expect("it can be written");
    let output = run(reader_script("read_chrome.py")?.arg(&path));
    Some(serde_json::from_str(&output).expect("the reader prints JSON"))
}

fn read_all(recording: &Recording) -> Option<Value> {
    read(recording, "out.json", AggregateOptions::default())
}

#[test]
fn the_tree_is_that_of_the_profile() {
    let recording = example().recording();
    let Some(seen) = read_all(&recording) else { return };
    let expected: Tree = TREE
        .iter()
        .map(|(path, calls, self_cost, total)| {
            (path.iter().map(ToString::to_string).collect(), (*calls, *self_cost, *total))
        })
        .collect();
    assert_eq!(printed(&seen["tree"]), expected);
    assert_eq!((&seen["unfinished"], seen["viztracer"].as_u64()), (&json!(0), seen["events"].as_u64()));
    assert_eq!(seen["args"]["load batch"], json!({"size": 32}));
    assert_eq!(seen["args"]["inner"], json!({"file": "/src/kernel.h:5", "module": "libkernel.so"}));
    assert_eq!(seen["other"]["time_0_unix_ns"], "1700000000123456789");
}

#[test]
fn samples_instants_and_counters_are_there() {
    let Some(seen) = read_all(&example().recording()) else { return };
    let step = json!(["main (/app/train.py:3)", "Model.step (/app/model.py:12)"]);
    let sampled = json!([
        "main (/app/train.py:3)",
        "Model.step (/app/model.py:12)",
        "outer (/src/kernel.c:42)",
        "inner (/src/kernel.h:5)"
    ]);
    let instants = json!([
        ["4242/4243", 600, "sample", ["fib (/app/fib.py:5)"], {"weight": 2}],
        ["4242/4242", 1450, "checkpoint", step, {}],
        ["4242/4242", 1700, "sample", sampled, {"weight": 3}],
        ["4242/4242", 2700, "saved", [], {"path": "a\"b", "epoch": 1}],
    ]);
    assert_eq!(seen["instants"], instants);
    let of = |name: &str, key: &str| -> Vec<(u64, f64)> {
        let counters = seen["counters"].as_array().unwrap().iter().filter(|counter| counter[2] == name);
        counters.map(|counter| (counter[1].as_u64().unwrap(), counter[3][key].as_f64().unwrap())).collect()
    };
    assert_eq!(of("queue length", "value"), [(50, 1.0), (1050, 2.5)]);
    assert_eq!(of("allocated bytes", "bytes"), [(150, 4096.0), (400, 4196.0), (1600, 4224.0), (1950, 128.0)]);
    assert_eq!(of("allocated blocks", "blocks"), [(150, 1.0), (400, 2.0), (1600, 3.0), (1950, 2.0)]);
}

#[test]
fn a_compressed_file_has_the_same_contents() {
    let recording = example().recording();
    let Some(plain) = read_all(&recording) else { return };
    let packed = read(&recording, "out.json.gz", AggregateOptions::default()).unwrap();
    assert_eq!((&plain["tree"], &plain["counters"]), (&packed["tree"], &packed["counters"]));
}

#[test]
fn every_name_is_read_back_unchanged() {
    let recording = nasty().recording();
    let Some(seen) = read_all(&recording) else { return };
    assert_eq!(printed(&seen["tree"]), profiled(&recording, &AggregateOptions::default()));
}

#[test]
fn random_recordings_agree_with_their_profiles() {
    for seed in 1..4 {
        let recording = random(seed, 20_000).recording();
        let Some(seen) = read_all(&recording) else { return };
        assert_eq!(printed(&seen["tree"]), profiled(&recording, &AggregateOptions::default()));
        let part = AggregateOptions {
            range: Some(2_000_000..6_000_000),
            threads: vec!["main".to_owned(), "worker 2".to_owned()],
            ..AggregateOptions::default()
        };
        let seen = read(&recording, "out.json", part.clone()).unwrap();
        assert_eq!(printed(&seen["tree"]), profiled(&recording, &part));
    }
}

#[test]
fn the_outer_of_two_spans_with_one_begin_comes_first() {
    let mut tape = Tape::new();
    tape.thread(1, 1, "main");
    for (ticks, name) in [(10, "a"), (10, "b"), (10, "c")] {
        tape.begin((1, ticks), span(name));
    }
    tape.end((1, 15));
    tape.begin((1, 15), span("d"));
    tape.end((1, 20));
    tape.end((1, 20));
    tape.begin((1, 20), span("e"));
    tape.end((1, 30));
    tape.end((1, 30));
    let recording = tape.recording();
    let text = exported_text(&recording, Format::Chrome, &ExportOptions::default());
    let trace: Value = serde_json::from_str(&text).unwrap();
    let spans = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let mut spans: Vec<(f64, &str)> =
        spans.map(|event| (event["ts"].as_f64().unwrap(), event["name"].as_str().unwrap())).collect();
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    assert_eq!(spans.iter().map(|span| span.1).collect::<String>(), "abcde");
    let Some(seen) = read_all(&recording) else { return };
    assert_eq!(printed(&seen["tree"]), profiled(&recording, &AggregateOptions::default()));
}

#[test]
fn unfinished_spans_are_marked_and_processes_with_one_pid_stay_separate() {
    let tape = |host: &str| {
        let mut tape = Tape::started(&ProcessStart { pid: 9, host: host.to_owned(), ..ProcessStart::default() });
        tape.thread(1, 9, "");
        tape.thread(2, 9, "later");
        tape.begin((1, 10), span("open"));
        tape.begin((2, 20), span("whole"));
        tape.end((2, 30));
        tape.end((2, 31));
        tape.instant((1, 40), span("last"), &[]);
        tape
    };
    let recording = recording_of(vec![tape("one"), tape("two")]);
    let Some(seen) = read_all(&recording) else { return };
    assert_eq!(seen["unfinished"], 2);
    let expected = Tree::from([(vec!["open".to_owned()], (2, 60, 60)), (vec!["whole".to_owned()], (2, 20, 20))]);
    assert_eq!(printed(&seen["tree"]), expected);
    let meta = seen["meta"].as_array().unwrap();
    let labels: Vec<&Value> = meta.iter().filter(|row| row[1] == "process_labels").collect();
    assert_eq!(labels, [&json!(["9/0", "process_labels", "one"]), &json!(["4194304/0", "process_labels", "two"])]);
    let threads = meta.iter().filter(|row| row[1] == "thread_name").map(|row| row[0].as_str().unwrap());
    assert_eq!(threads.collect::<Vec<_>>(), ["9/9", "9/4194304", "4194304/9", "4194304/4194304"]);
}

#[test]
fn details_of_an_event_take_precedence_over_known_fields() {
    let mut tape = Tape::new();
    tape.thread(1, 1, "main");
    let function = tape.python("f", "f.py", 1);
    tape.begin_with((1, 1), Tape::at(function, 2), &[], r#"{"file": "own", "unfinished": 7, "a": 1, "a": 2}"#);
    tape.instant_with((1, 2), span("unusual"), &[], "{'no': json}");
    let Some(seen) = read_all(&tape.recording()) else { return };
    assert_eq!(seen["args"]["f"], json!({"file": "own", "unfinished": 7, "a": 2}));
    assert_eq!(seen["instants"][0][4], json!({"details": "{'no': json}"}));
}

#[test]
fn the_text_equals_the_golden_file() {
    assert_golden("example.json", &exported_text(&example().recording(), Format::Chrome, &ExportOptions::default()));
}
