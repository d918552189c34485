//! Recordings of phases in all formats: phases with and without files, runs, failures and phases left open.

use serde_json::{Value, json};
use stackweave_core::RawFrame;
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::AggregateOptions;
use stackweave_recording::Recording;
use stackweave_recording::events;
use stackweave_recording::file::ProcessStart;
use stackweave_store::label;
use stackweave_tapes::{Tape, span, with_bytes};
use stackweave_testkit::folder::Folder;

use crate::common::json_lines::read_json_lines;
use crate::common::readers::{reader_script, run, system_program};
use crate::common::report::Page;
use crate::common::trees::{Tree, printed, profiled};
use crate::common::{exported, exported_text};

/// A file of a library: phases are shown wherever their code is.
const FILE: &str = "/opt/py/lib/python3.12/site-packages/models/nn.py";

fn code(name: &str, line: u32) -> RawFrame {
    label(name, FILE, line).unwrap()
}

/// Records a compilation that fails. A tick is a microsecond.
fn compiled() -> Recording {
    let start = ProcessStart { pid: 1, ticks_per_second: 1_000_000, ..ProcessStart::default() };
    let mut tape = Tape::started(&start);
    tape.thread(1, 1, "main");
    for kind in &events::TIMING {
        tape.kind(kind);
    }
    let forward = code("Model.forward", 10).to_bits();
    tape.event((1, 0), &events::BEGIN_RUN, &with_bytes(&[forward], r#"{"compile_id":"0/0"}"#));
    tape.begin((1, 100), span("tracing"));
    tape.event((1, 200), &events::BEGIN_CODE, &[code("attention", 33).to_bits(), 40, 1]);
    tape.event((1, 250), &events::BEGIN_CODE, &[code("attention", 33).to_bits(), 40, 2]);
    tape.end((1, 300));
    tape.event((1, 400), &events::END_WITH, &with_bytes(&[], r#"{"guards":3}"#));
    tape.begin((1, 410), span("guard"));
    tape.event((1, 450), &events::END_LEFT_OPEN, &[]);
    tape.event((1, 450), &events::END_FAILED, &with_bytes(&[], ""));
    tape.event((1, 500), &events::UNMATCHED_POP, &[span("unmatched pop").to_bits(), 0]);
    tape.event((1, 1000), &events::END_FAILED, &with_bytes(&[], r#"{"error":"Unsupported: no"}"#));
    tape.recording()
}

fn tree() -> Tree {
    let tree: [(&[&str], u64, i64, i64); 5] = [
        (&["Model.forward"], 1, 650, 1000),
        (&["Model.forward", "tracing"], 1, 110, 350),
        (&["Model.forward", "tracing", "attention"], 1, 150, 200),
        (&["Model.forward", "tracing", "attention", "attention"], 1, 50, 50),
        (&["Model.forward", "tracing", "guard"], 1, 40, 40),
    ];
    let microseconds = |(path, calls, self_cost, total): (&[&str], u64, i64, i64)| {
        (path.iter().map(ToString::to_string).collect(), (calls, self_cost * 1000, total * 1000))
    };
    tree.into_iter().map(microseconds).collect()
}

fn read(script: &str, format: Format) -> Option<Value> {
    let folder = Folder::new();
    let path = folder.file(if format == Format::Chrome { "out.json" } else { "out" });
    export(&compiled(), format, &path, &ExportOptions::default(), (None, &mut |_| {})).unwrap();
    let output = run(reader_script(script)?.arg(&path));
    Some(serde_json::from_str(&output).unwrap())
}

#[test]
fn readers_see_the_tree_of_the_profile() {
    assert_eq!(profiled(&compiled(), &AggregateOptions::default()), tree());
    for (script, format) in [("read_chrome.py", Format::Chrome), ("read_perfetto.py", Format::Perfetto)] {
        let Some(seen) = read(script, format) else { return };
        assert_eq!((printed(&seen["tree"]), &seen["unfinished"]), (tree(), &json!(0)), "{format}");
    }
    if system_program("node", "--version").is_none() {
        return;
    }
    for format in [Format::Chrome, Format::Perfetto] {
        let Some(seen) = read("trace_processor.py", format) else { return };
        assert_eq!((printed(&seen["tree"]), &seen["problems"]), (tree(), &json!([])), "{format}");
        let args: Vec<(i64, &str, &str)> = seen["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row[0].as_i64().unwrap(), row[2].as_str().unwrap(), row[3].as_str().unwrap_or_default()))
            .collect();
        let prefix = if format == Format::Chrome { "args" } else { "debug" };
        let details = [(0, "error", "Unsupported: no"), (0, "compile_id", "0/0"), (200_000, "guards", "3")];
        for (time, key, value) in details {
            assert!(args.contains(&(time, &format!("{prefix}.{key}"), value)), "{format}: {key} in {args:?}");
        }
        for (time, key) in [(0, "failed"), (0, "run"), (100_000, "failed"), (410_000, "left_open")] {
            let key = format!("{prefix}.{key}");
            assert!(args.iter().any(|row| row.0 == time && row.1 == key), "{format}: {key} in {args:?}");
        }
    }
}

#[test]
fn a_span_has_the_details_of_its_begin_and_its_end() {
    let text = exported_text(&compiled(), Format::Chrome, &ExportOptions::default());
    let whole: Value = serde_json::from_str(&text).unwrap();
    let events: Vec<&Value> =
        whole["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").collect();
    let args = |began: f64| &events.iter().find(|event| event["ts"].as_f64() == Some(began)).unwrap()["args"];
    let at = |line: u32| format!("{FILE}:{line}");
    let forward = json!({"run": true, "compile_id": "0/0", "failed": true, "error": "Unsupported: no", "file": at(10)});
    assert_eq!(args(0.0), &forward);
    assert_eq!(args(100.0), &json!({"failed": true}));
    let attention = json!({"bytecode_count": 40, "inline_depth": 1, "guards": 3, "file": at(33)});
    assert_eq!((args(200.0), &args(250.0)["inline_depth"]), (&attention, &json!(2)));
    assert_eq!(args(410.0), &json!({"left_open": true}));
}

#[test]
fn readers_of_pstats_see_recursion_and_callers() {
    let folder = Folder::new();
    let path = folder.write("out.prof", &exported(&compiled(), Format::Pstats, &ExportOptions::default()));
    for reader in ["pstats", "snakeviz", "gprof2dot", "tuna"] {
        let Some(mut command) = reader_script("pstats_readers.py") else { return };
        let output: Value = serde_json::from_str(&run(command.arg(reader).arg(&path))).unwrap();
        assert!(output.to_string().contains("attention"), "{reader}: {output}");
        if reader == "pstats" {
            let functions = output["functions"].as_array().unwrap();
            let attention = functions.iter().find(|function| function[2] == "attention").unwrap();
            let expected =
                [json!(FILE), json!(33), json!("attention"), json!(1), json!(2), json!(200e-6), json!(200e-6)];
            assert_eq!(attention.as_array().unwrap()[..7], expected, "{output}");
        }
    }
}

#[test]
fn pictures_hide_no_phases_of_libraries() {
    let folded = exported_text(&compiled(), Format::Folded, &ExportOptions::default());
    assert!(folded.contains("Model.forward (nn.py);tracing;attention (nn.py);attention (nn.py) 50000\n"), "{folded}");
    for (format, time_order) in [(Format::Flamegraph, false), (Format::Flamegraph, true), (Format::Callgraph, false)] {
        let options = ExportOptions { time_order, ..ExportOptions::default() };
        let picture = exported_text(&compiled(), format, &options);
        for name in ["Model.forward", "tracing", "attention", "guard"] {
            assert!(picture.contains(name), "{name} in {format}, {time_order}");
        }
        assert!(format == Format::Callgraph || picture.contains("nn.py:33"), "{picture}");
    }
}

#[test]
fn a_flame_graph_in_time_order_shows_failures() {
    let options = ExportOptions { time_order: true, ..ExportOptions::default() };
    let picture = exported_text(&compiled(), Format::Flamegraph, &options);
    assert!(picture.contains("failed: Unsupported: no"), "{picture}");
    let boxes = |class: &str| picture.lines().filter(|line| line.starts_with("<g") && line.contains(class)).count();
    assert_eq!((boxes(r#" failed""#), boxes("<title>guard")), (2, 1), "{picture}");
    assert!(!picture.contains(">labels</text>"), "{picture}");
}

#[test]
fn every_format_exports_phases() {
    let folder = Folder::new();
    for format in Format::all().filter(|format| !format.is_of_memory()) {
        let path = folder.file(&format.to_string());
        let done = export(&compiled(), format, &path, &ExportOptions::default(), (None, &mut |_| {})).unwrap();
        assert!(done.bytes > 0, "{format}");
    }
    let text = exported_text(&compiled(), Format::Json, &ExportOptions::default());
    let kinds: Vec<String> =
        read_json_lines(&text).iter().map(|line| line["kind"].as_str().unwrap().to_owned()).collect();
    let expected = [
        "begin-run",
        "begin",
        "begin-code",
        "begin-code",
        "end-with",
        "begin",
        "end-left-open",
        "end-failed",
        "unmatched-pop",
        "end-failed",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_report_has_runs() {
    let page = Page::read(&exported_text(&compiled(), Format::Report, &ExportOptions::default()));
    let functions = page.functions();
    let index = |name: &str| functions.iter().position(|known| known == name).unwrap();
    let phase = |name: &str, calls: u64, total: u64, self_cost: u64| json!({"function": index(name), "calls": calls, "totalNs": total, "selfNs": self_cost});
    let run = json!({
        "number": 1,
        "parent": null,
        "thread": 0,
        "function": index("Model.forward"),
        "beganNs": 0,
        "durationNs": 1_000_000,
        "failed": true,
        "leftOpen": false,
        "unfinished": false,
        "attributes": {"compile_id": "0/0", "error": "Unsupported: no"},
        "phases": [phase("tracing", 1, 350_000, 310_000), phase("guard", 1, 40_000, 40_000)],
    });
    assert_eq!(page.json(&page.head["runs"]), json!([run]));
    let remarks = page.head["remarks"].as_array().unwrap();
    assert_eq!(remarks.len(), 2, "{remarks:?}");
    assert!(remarks[0].as_str().unwrap().starts_with("1 pop was left out"), "{remarks:?}");
}
