//! A report has the figures of profiles, and all data of a recording is in its blocks.

use serde_json::{Value, json};
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::{AggregateOptions, Grouping, Measure, aggregate};
use stackweave_recording::Recording;
use stackweave_recording::events::Allocator;
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::{Tape, recording, recording_of, span};
use stackweave_testkit::folder::Folder;

use crate::common::examples::{PID, example, example_from, example_start, nasty, nasty_names, random};
use crate::common::memory::{memory, memory_of, memory_tape};
use crate::common::report::{Page, lines_of};
use crate::common::traced::{random_traced, traced};

fn is_of(tree: &Value, measure: Measure, device: i64) -> bool {
    tree["measure"] == measure.as_str() && tree["device"] == device && tree["side"] == "after"
}

/// Compares trees with the profiles of a recording, for each thread and all together.
fn compare(recording: &Recording, part: &AggregateOptions, counted: &[(Measure, i64)]) {
    let options = ExportOptions { part: part.clone(), ..ExportOptions::default() };
    let page = Page::of(recording, &options);
    let mut threads: Vec<(usize, u32)> = Vec::new();
    for (process, of) in recording.processes().iter().enumerate() {
        let wanted = of.dictionary().threads().filter(|thread| part.selects(Some(thread)));
        threads.extend(wanted.map(|thread| (process, thread.number)));
    }
    assert_eq!(page.head["threads"].as_array().unwrap().len(), threads.len());
    for &(measure, device) in counted {
        let profiles = |grouping| {
            let (measure, device) = (Some(measure), Some(device));
            let part = AggregateOptions { measure, device, lines: true, grouping, ..part.clone() };
            aggregate(recording.processes(), &part, None, &mut |_| {}).unwrap().parts
        };
        let whole = lines_of(&profiles(Grouping::Merged)[0].profile);
        assert_eq!(page.tree(|tree| is_of(tree, measure, device)), whole, "{measure} of {device}");
        for of_thread in profiles(Grouping::Threads) {
            let thread = (of_thread.process.unwrap(), of_thread.thread.unwrap());
            let position = threads.iter().position(|known| *known == thread).unwrap();
            let found = page.tree(|tree| is_of(tree, measure, device) && tree["thread"] == position);
            let expected = lines_of(&of_thread.profile);
            // A thread without memory has no tree of it.
            assert!(found == expected || found.is_empty() && expected.len() == 1, "{measure} of {thread:?}");
        }
    }
    let is_expected = |tree: &&Value| counted.iter().any(|(measure, device)| is_of(tree, *measure, *device));
    let unexpected: Vec<&Value> = page.trees().iter().filter(|tree| !is_expected(tree)).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
}

const OF_PROGRAM: [(Measure, i64); 6] = [
    (Measure::WallTime, -1),
    (Measure::Samples, -1),
    (Measure::AllocatedBytes, -1),
    (Measure::LiveBytes, -1),
    (Measure::PeakBytes, -1),
    (Measure::TemporaryBytes, -1),
];

#[test]
fn trees_equal_profiles() {
    let all = AggregateOptions::default();
    compare(&traced().recording(), &all, &OF_PROGRAM[..1]);
    compare(&example().recording(), &all, &OF_PROGRAM);
    for seed in [5, 6] {
        compare(&random(seed, 1200).recording(), &all, &OF_PROGRAM);
        compare(&random_traced(seed, 1200).recording(), &all, &OF_PROGRAM[..1]);
    }
}

#[test]
fn trees_are_of_the_selected_part() {
    let recording = random(7, 1200).recording();
    let threads = AggregateOptions { threads: vec!["worker".into()], ..AggregateOptions::default() };
    compare(&recording, &threads, &OF_PROGRAM);
    let range = AggregateOptions { range: Some(400_000..900_000), ..AggregateOptions::default() };
    compare(&recording, &range, &OF_PROGRAM);
    let one = AggregateOptions { measure: Some(Measure::Samples), ..AggregateOptions::default() };
    compare(&recording, &one, &OF_PROGRAM[1..2]);
    let page = Page::of(&recording, &ExportOptions { part: range, ..ExportOptions::default() });
    assert_eq!(page.head["remarks"], json!(["This is a part of the recording: from 400 us to 900 us."]));
}

/// All measures but samples, which memory recordings do not have.
const OF_MEMORY: [(Measure, i64); 9] = [
    (Measure::WallTime, -1),
    (Measure::AllocatedBytes, -1),
    (Measure::LiveBytes, -1),
    (Measure::PeakBytes, -1),
    (Measure::TemporaryBytes, -1),
    (Measure::AllocatedBytes, 1),
    (Measure::LiveBytes, 1),
    (Measure::PeakBytes, 1),
    (Measure::TemporaryBytes, 1),
];

#[test]
fn recordings_of_memory_have_trees_of_each_device() {
    compare(&memory().recording(), &AggregateOptions::default(), &OF_MEMORY);
    let two = recording_of(vec![memory(), memory_of(77)]);
    compare(&two, &AggregateOptions::default(), &OF_MEMORY);
    let remarks = Page::of(&two, &ExportOptions::default()).head["remarks"].to_string();
    assert!(remarks.contains("this sum was never live at once"), "{remarks}");
}

#[test]
fn a_sampled_recording_is_labelled_as_estimated() {
    let options = [("recorder", "memory"), ("memory.mode", "sampled"), ("memory.sample_every", "4096")];
    let mut tape = memory_tape(&options);
    tape.allocate_by((1, 100), Allocator::Malloc, (0x1000, 100), &[span("load")]);
    let recording = tape.recording();
    let page = Page::of(&recording, &ExportOptions::default());
    let remarks = json!(["Figures are estimated, from a sample of one allocation in 4.00 KiB."]);
    assert_eq!(page.head["remarks"], remarks);
    compare(&recording, &AggregateOptions::default(), &OF_MEMORY[1..5]);
}

#[test]
fn several_processes_are_side_by_side() {
    let other = ProcessStart { pid: 77, started_monotonic_ns: 500, ..example_start() };
    let recording = recording_of(vec![example(), example_from(&other)]);
    compare(&recording, &AggregateOptions::default(), &OF_PROGRAM);
    let page = Page::of(&recording, &ExportOptions::default());
    let processes = page.head["processes"].as_array().unwrap();
    assert_eq!(processes.iter().map(|of| of["pid"].as_u64().unwrap()).collect::<Vec<_>>(), [u64::from(PID), 77]);
    let of_second = |thread: &&Value| thread["process"] == 1;
    assert_eq!(page.head["threads"].as_array().unwrap().iter().filter(of_second).count(), 2);
}

/// Records a helper that was started first, the program, and its child: files are read in the order of their names.
#[test]
fn a_report_of_several_processes_is_named_after_the_parent() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let program = ProcessStart { pid: 50, command_line: words("python3 /srv/train.py --fast"), ..example_start() };
    let tracker =
        ProcessStart { pid: 51, parent_pid: 50, command_line: words("python3 -c tracker"), ..example_start() };
    let mut short =
        Tape::started(&ProcessStart { pid: 40, command_line: words("python3 other.py"), ..example_start() });
    short.begin((1, 10), span("short"));
    let recording = recording_of(vec![short, example_from(&tracker), example_from(&program)]);
    let page = Page::of(&recording, &ExportOptions::default());
    assert_eq!(page.head["title"], "train.py --fast");
}

#[test]
fn the_thread_of_the_recorder_is_not_listed() {
    let mut tape = example();
    tape.thread(9, 99, "stackweave");
    tape.instant((9, 100), span("figures"), &[]);
    let page = Page::of(&tape.recording(), &ExportOptions::default());
    let names: Vec<&Value> = page.head["threads"].as_array().unwrap().iter().map(|thread| &thread["name"]).collect();
    assert_eq!(names, ["main", "worker"]);
}

#[test]
fn all_data_of_a_recording_is_in_blocks() {
    let mut tape = nasty();
    let long = "</script>".repeat(12_000);
    tape.begin((1, 100_000), span(&long));
    let recording = tape.recording();
    let title = Some("</title><script>alert('title')</script>".to_owned());
    let options = ExportOptions { title: title.clone(), before: Some(&recording), ..ExportOptions::default() };
    let page = Page::of(&recording, &options);
    let empty = Page::of(&Tape::new().recording(), &ExportOptions::default());
    // Each block ends with a newline, and their numbers differ.
    let bare = |page: &Page| page.bare.replace('\n', "");
    assert!(bare(&page) == bare(&empty), "the page differs outside of its blocks");
    assert_eq!(page.head["title"], json!(title));
    let functions = page.functions();
    for name in nasty_names() {
        assert_eq!(functions.iter().filter(|known| **known == name).count(), 2, "{name:?}");
    }
    assert!(functions.contains(&long));
    compare(&recording, &AggregateOptions::default(), &OF_PROGRAM[..1]);
}

#[test]
fn damage_is_reported_once() {
    let mut bytes = random(41, 3000).bytes();
    let position = bytes.len() - 2000;
    bytes[position] ^= 0x55;
    let recording = recording(bytes);
    let folder = Folder::new();
    let path = folder.file("out.html");
    let done = export(&recording, Format::Report, &path, &ExportOptions::default(), (None, &mut |_| {})).unwrap();
    let page = Page::read(&std::fs::read_to_string(path).unwrap());
    assert!(done.missing.len() == 1 && done.missing[0].contains("damaged"), "{:?}", done.missing);
    assert_eq!(page.head["remarks"], json!(done.missing));
}

#[test]
fn an_empty_recording_has_a_report() {
    let page = Page::of(&Tape::new().recording(), &ExportOptions::default());
    assert_eq!((page.trees().len(), &page.head["runs"], &page.head["before"]), (0, &Value::Null, &Value::Null));
    assert_eq!(page.head["sources"], json!([]));
    assert_eq!(page.head["remarks"], json!(["There is nothing to show: nothing was recorded."]));
    let without_figures = memory_tape(&[("recorder", "memory"), ("memory.mode", "aggregate")]);
    let page = Page::of(&without_figures.recording(), &ExportOptions::default());
    let remark = "There is nothing to show: the recording ended before the first figures were written.";
    assert_eq!(page.head["remarks"], json!([remark]));
}

/// Records functions in these files, the first of which has the highest cost.
fn of_files(files: &[String], started_wall_ns: i64) -> Recording {
    let mut tape = Tape::started(&ProcessStart { pid: 1, started_wall_ns, ..ProcessStart::default() });
    tape.thread(1, 1, "main");
    let mut ticks = 0;
    for (cost, file) in (1..=files.len() as u64).rev().zip(files) {
        let function = tape.python("function", file, 1);
        tape.begin((1, ticks), Tape::at(function, 2));
        ticks += cost * 10;
        tape.end((1, ticks));
    }
    tape.recording()
}

const FAR_FUTURE: i64 = i64::MAX / 2;

#[test]
fn readable_sources_are_included() {
    let folder = Folder::new();
    let write = |name: &str, text: &str| folder.write(name, text.as_bytes()).to_str().unwrap().to_owned();
    let nasty = "def f():\n    return '</script><script>alert(1)</script>'\n";
    let (good, short) = (write("good.py", nasty), write("short.py", "x"));
    let files = [good.clone(), short.clone(), write("secret.pem", "a\nb\n"), "<string>".into(), "/no/such.py".into()];
    let recording = of_files(&files, FAR_FUTURE);
    let all = ExportOptions { sources: Some(true), ..ExportOptions::default() };
    let page = Page::of(&recording, &all);
    let sources = page.sources();
    assert_eq!(sources.keys().collect::<Vec<_>>(), [&good, &short]);
    // A function on a line that this file does not have.
    assert_eq!((&sources[&good], &sources[&short]), (&(nasty.to_owned(), false), &("x".to_owned(), true)));
    assert!(!page.bare.contains("alert(1)"));
    let older = Page::of(&of_files(&files, 1), &all);
    assert!(older.sources()[&good].1, "it was written after the recording");
    let without = Page::of(&recording, &ExportOptions { sources: Some(false), ..ExportOptions::default() });
    assert!(without.sources().is_empty() && without.head["remarks"] == json!([]));
    // The recording has no user and no machine.
    let foreign = Page::of(&recording, &ExportOptions::default());
    assert!(foreign.sources().is_empty());
    assert!(foreign.left_out.is_some_and(|text| text.contains("--sources")));
    assert!(page.left_out.is_none() && without.left_out.is_none());
}

#[test]
fn the_recording_before_a_change_uses_the_same_tables() {
    let (before, after) = (random(11, 800).recording(), random(12, 800).recording());
    let page = Page::of(&after, &ExportOptions { before: Some(&before), ..ExportOptions::default() });
    compare(&after, &AggregateOptions::default(), &OF_PROGRAM);
    for (measure, _) in OF_PROGRAM {
        let part = AggregateOptions { measure: Some(measure), lines: true, ..AggregateOptions::default() };
        let profile = aggregate(before.processes(), &part, None, &mut |_| {}).unwrap().merged();
        let found = page.tree(|tree| tree["side"] == "before" && tree["measure"] == measure.as_str());
        assert_eq!(found, lines_of(&profile), "{measure}");
    }
    assert!(page.trees().iter().all(|tree| tree["side"] == "after" || tree["thread"].is_null()));
    let expected = json!({"title": "random", "wallNs": "0", "durationNs": before.time_range().unwrap().end});
    assert_eq!(page.head["before"], expected);
}

#[test]
fn notes_of_a_tracer_are_remarks() {
    let page = Page::of(&traced().recording(), &ExportOptions::default());
    let expected = ["1 function was demoted: other", "12 repairs"].map(|note| format!("The tracer noted: {note}."));
    assert_eq!(page.head["remarks"], json!(expected));
}

#[test]
fn a_function_that_was_moved_by_an_edit_is_one_function() {
    let run = |load: u32, lambdas: [u32; 2]| {
        let mut tape = Tape::new();
        let load = tape.python("load", "a.py", load);
        tape.sample((1, 1), &[Tape::at(load, 1)], 5);
        for line in lambdas {
            let lambda = tape.python("<lambda>", "a.py", line);
            tape.sample((1, 2), &[Tape::at(lambda, 1)], 3);
        }
        tape.recording()
    };
    let (before, after) = (run(10, [20, 30]), run(14, [24, 30]));
    let page = Page::of(&after, &ExportOptions { before: Some(&before), ..ExportOptions::default() });
    let mut functions = page.functions();
    functions.sort();
    // The lambdas have one name: only the one on the same line is known to be the same.
    assert_eq!(functions, ["<lambda>", "<lambda>", "<lambda>", "load"]);
    let whole = |side: &str| page.tree(|tree| tree["side"] == side && tree["measure"] == "samples");
    assert_eq!(whole("before"), whole("after"));
    assert_eq!(whole("after").values().map(|(_, self_cost, _)| self_cost).sum::<i64>(), 11);
}
