//! A family of kinds that no code knows goes through everything that reads recordings, by its roles.

use serde_json::{Value, json};
use stackweave_core::{EventKind, Field, FieldType, Role};
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::{AggregateOptions, Statistics, aggregate};
use stackweave_recording::Recording;
use stackweave_recording::events::fields;
use stackweave_tapes::{Tape, span, stack_word};
use stackweave_testkit::folder::Folder;

use crate::common::examples::MAIN_THREAD;
use crate::common::json_lines::read_json_lines;
use crate::common::memory::memory_tape;
use crate::common::{exported, exported_text};

/// Returns the kinds of a recorder of waits: a wait is a span, and what wakes a thread is an instant.
fn waits() -> [EventKind; 3] {
    let thread = Field::new("woken_by", FieldType::Unsigned);
    let fields = |more: &[Field]| [&[fields::FRAME, fields::STACK], more].concat().into();
    let lock = Field::new("lock", FieldType::Address);
    [
        EventKind { name: "wait".into(), role: Role::Begin, fields: fields(&[]) },
        EventKind { name: "wait-end".into(), role: Role::End, fields: vec![thread.clone()].into() },
        EventKind { name: "woken".into(), role: Role::Instant, fields: fields(&[lock, thread]) },
    ]
}

/// Records a wait of 20 ns, and what ended it.
fn recording() -> Recording {
    let mut tape = memory_tape(&[]);
    let [begin, end, woken] = waits();
    let main = Tape::at(tape.python("main", "/app/train.py", 1), 2);
    let (lock, stack) = (span("queue.lock").to_bits(), stack_word(&[main]));
    tape.begin((MAIN_THREAD, 5), main);
    tape.event((MAIN_THREAD, 10), &begin, &[lock, stack]);
    tape.event((MAIN_THREAD, 30), &end, &[7]);
    tape.event((MAIN_THREAD, 35), &woken, &[lock, stack, 0x1000, 7]);
    tape.end((MAIN_THREAD, 40));
    tape.recording()
}

#[test]
fn every_format_and_the_report_have_the_waits() {
    for format in Format::all().filter(|format| !format.is_of_memory()) {
        let folder = Folder::new();
        let path = folder.file("out");
        let options = ExportOptions::default();
        let done = export(&recording(), format, &path, &options, (None, &mut |_| {})).unwrap();
        assert!(done.bytes > 0 && done.missing.is_empty(), "{format}");
        let is_text = !matches!(format, Format::Parquet | Format::Pprof | Format::Report);
        if is_text {
            let bytes = std::fs::read(&path).unwrap();
            assert!(String::from_utf8_lossy(&bytes).contains("queue.lock"), "{format}");
        }
    }
}

#[test]
fn their_fields_are_details() {
    let trace: Value =
        serde_json::from_slice(&exported(&recording(), Format::Chrome, &ExportOptions::default())).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().find(|event| event["ph"] == phase && event["name"] == "queue.lock").unwrap();
    assert_eq!((&of("X")["dur"], &of("X")["args"]["woken_by"]), (&json!(0.02), &json!(7)));
    assert_eq!((&of("i")["args"]["lock"], &of("i")["args"]["woken_by"]), (&json!("0x1000"), &json!(7)));
    let lines = read_json_lines(&exported_text(&recording(), Format::Json, &ExportOptions::default()));
    let event = |kind: &str| lines.iter().find(|event| event["kind"] == kind).unwrap();
    assert_eq!((&event("wait")["name"], &event("wait-end")["woken_by"]), (&json!("queue.lock"), &json!(7)));
    assert_eq!((&event("woken")["lock"], &event("woken")["woken_by"]), (&json!("0x1000"), &json!(7)));
}

#[test]
fn they_are_functions_of_a_profile() {
    let profile = aggregate(recording().processes(), &AggregateOptions::default(), None, &mut |_| {}).unwrap().merged();
    let statistics = Statistics::of(&profile);
    let of = |name: &str| {
        let is_it = |id| &**profile.functions().function(id).full_name() == name;
        statistics.functions().find(|(id, _)| is_it(*id)).map(|(_, cost)| (cost.calls, cost.self_cost, cost.total))
    };
    assert_eq!((of("main"), of("queue.lock")), (Some((1, 15, 35)), Some((1, 20, 20))));
}
