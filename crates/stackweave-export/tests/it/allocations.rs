//! Tables of allocations, as Python's csv and Polars read them.

use serde_json::{Value, json};
use stackweave_export::{ExportError, ExportOptions, Format, export};
use stackweave_profile::{AggregateOptions, Measure, View};
use stackweave_recording::Recording;
use stackweave_recording::events::Allocator;
use stackweave_tapes::{Tape, span};
use stackweave_testkit::folder::Folder;

use crate::common::examples::{MAIN_THREAD, example, nasty_names};
use crate::common::exported;
use crate::common::memory::{memory, memory_tape};
use crate::common::readers::{reader_script, run};

fn read(recording: &Recording, part: AggregateOptions) -> Option<Value> {
    let options = ExportOptions { part, ..ExportOptions::default() };
    let folder = Folder::new();
    let path = folder.write("out.csv", &exported(recording, Format::Allocations, &options));
    Some(serde_json::from_str(&run(reader_script("read_table.py")?.arg(path))).unwrap())
}

fn of(measure: Measure) -> AggregateOptions {
    AggregateOptions { measure: Some(measure), ..AggregateOptions::default() }
}

/// Returns allocator, number, size, tid, tag, device and function of each row.
fn rows(table: &Value) -> Vec<Value> {
    let keys = ["allocator", "num_allocations", "size", "tid", "tag", "device", "function"];
    let rows = table["rows"].as_array().unwrap().iter();
    rows.map(|row| Value::from(keys.map(|key| row[key].clone()).to_vec())).collect()
}

#[test]
fn a_table_has_what_was_live_at_the_peak() {
    let Some(table) = read(&memory().recording(), AggregateOptions::default()) else { return };
    let expected = [
        json!(["mmap", "1", "8192", "4242", "", "-1", "main"]),
        json!(["calloc", "1", "2000", "4243", "loading", "-1", "load"]),
        json!(["malloc", "1", "1000", "4242", "", "-1", "Model.step"]),
        json!(["host-allocate", "1", "512", "4242", "", "1", "Model.step"]),
        json!(["host-allocate", "1", "256", "4242", "", "1", "load"]),
    ];
    assert_eq!(rows(&table), expected);
    let step = &table["rows"][2];
    assert_eq!(
        (&step["location"], &step["thread_name"], &step["pid"]),
        (&json!("/app/model.py:12"), &json!("main"), &json!("4242"))
    );
    assert_eq!(step["stack_trace"], "Model.step;/app/model.py;12|main;/app/train.py;3");
    assert_eq!(table["polars"], json!([5, 8192 + 2000 + 1000 + 512 + 256]));
}

#[test]
fn rows_that_differ_only_in_hidden_frames_are_one() {
    let mut tape = memory_tape(&[]);
    let main = Tape::at(tape.python("main", "/app/train.py", 1), 2);
    let mut library = |name: &str| Tape::at(tape.python(name, "/usr/lib/python3.12/json/decoder.py", 1), 2);
    let (outer, [one, other]) = (library("decode"), ["raw_decode", "scan_once"].map(&mut library));
    for (address, inner) in [(0x1000, one), (0x2000, other)] {
        tape.allocate_by((MAIN_THREAD, address), Allocator::Malloc, (address, 16), &[inner, outer, main]);
    }
    let recording = tape.recording();
    let stacks = |view: Option<View>| {
        let options = ExportOptions { view, ..ExportOptions::default() };
        let folder = Folder::new();
        let path = folder.write("out.csv", &exported(&recording, Format::Allocations, &options));
        let table: Value = serde_json::from_str(&run(reader_script("read_table.py")?.arg(path))).unwrap();
        let rows = table["rows"].as_array().unwrap().iter();
        Some(rows.map(|row| json!([row["num_allocations"], row["size"], row["stack_trace"]])).collect::<Vec<_>>())
    };
    let Some(hidden) = stacks(None) else { return };
    let outer = "decode;/usr/lib/python3.12/json/decoder.py;2|main;/app/train.py;2";
    assert_eq!(hidden, [json!(["2", "32", outer])]);
    let all = stacks(Some(View { show_all: true, ..View::default() })).unwrap();
    let inner = |name: &str| json!(["1", "16", format!("{name};/usr/lib/python3.12/json/decoder.py;2|{outer}")]);
    assert_eq!(all, [inner("raw_decode"), inner("scan_once")]);
}

#[test]
fn each_measure_has_its_bytes() {
    let sum = |measure| -> Option<u64> {
        let table = read(&memory().recording(), AggregateOptions { device: Some(-1), ..of(measure) })?;
        Some(rows(&table).iter().map(|row| row[2].as_str().unwrap().parse::<u64>().unwrap()).sum())
    };
    if let Some(live) = sum(Measure::LiveBytes) {
        assert_eq!((live, sum(Measure::PeakBytes)), (6120, Some(11_192)));
        assert_eq!(sum(Measure::AllocatedBytes), Some(1000 + 2000 + 8192 + 1024 + 24));
        assert_eq!(sum(Measure::Allocations), sum(Measure::AllocatedBytes));
    }
}

#[test]
fn names_are_read_back_unchanged() {
    let mut tape = memory_tape(&[]);
    for (name, at) in nasty_names().iter().zip(1_u64..) {
        let function = tape.python(name, "/a, \"b\"/c.py", 1);
        tape.allocate_by((MAIN_THREAD, at), Allocator::Malloc, (0x1000 * at, 100 - at), &[Tape::at(function, 2)]);
    }
    let Some(table) = read(&tape.recording(), AggregateOptions::default()) else { return };
    let found: Vec<&str> =
        table["rows"].as_array().unwrap().iter().map(|row| row["function"].as_str().unwrap()).collect();
    assert_eq!(found, nasty_names());
    assert_eq!(table["rows"][0]["location"], "/a, \"b\"/c.py:2");
}

#[test]
fn texts_are_no_formulas() {
    let mut tape = memory_tape(&[]);
    let names = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a=1"];
    for (name, at) in names.iter().zip(1_u64..) {
        let function = tape.python(name, "=file.py", 1);
        tape.allocate_by((MAIN_THREAD, at), Allocator::Malloc, (0x1000 * at, 100 - at), &[Tape::at(function, 2)]);
    }
    let written = exported(&tape.recording(), Format::Allocations, &ExportOptions::default());
    let text = String::from_utf8(written).unwrap();
    let is_guarded = |name: &str| text.contains(&format!("'{name}")) && !text.contains(&format!(",{name},'=file.py:2"));
    assert!(names[..6].iter().all(|name| is_guarded(name)), "{text}");
    assert!(text.contains(",a=1,'=file.py:2,") && text.contains(",-1,"), "numbers and other texts stay: {text}");
}

#[test]
fn memory_of_other_recorders_is_included() {
    let Some(table) = read(&example().recording(), of(Measure::AllocatedBytes)) else { return };
    assert_eq!(table["polars"], json!([3, 4224]));
}

#[test]
fn recordings_without_memory_and_other_measures_are_refused() {
    let mut tape = Tape::new();
    tape.begin((1, 10), span("a"));
    let folder = Folder::new();
    let recording = tape.recording();
    for (part, why) in
        [(AggregateOptions::default(), "has no memory"), (of(Measure::WallTime), "not a measure of memory")]
    {
        let options = ExportOptions { part, ..ExportOptions::default() };
        let result = export(&recording, Format::Allocations, &folder.file("out.csv"), &options, (None, &mut |_| {}));
        assert!(matches!(&result, Err(ExportError::Unsupported(refusal)) if refusal.contains(why)), "{result:?}");
    }
}
