//! Pictures state the share that is hidden inside libraries and the interpreter.

use stackweave_export::{ExportOptions, Format};
use stackweave_profile::{AggregateOptions, View};
use stackweave_recording::Recording;
use stackweave_tapes::Tape;

use crate::common::exported_text;
use crate::common::traced::{Called, Traced as _};
use crate::common::trees::profiled;

/// Records a `main` that spends its time in the standard library: `dumps` is visible there, and the functions that it calls
/// are hidden. `work` returns to the program in the middle of that.
fn program(hidden: u64) -> Recording {
    let mut tape = Tape::new();
    tape.declare();
    tape.thread(1, 1, "main");
    let library = "/usr/lib/python3.11/json/encoder.py";
    let mut called = |name, file| Called(Tape::at(tape.python(name, file, 1), 0), None);
    let (main, dumps) = (called("main", "/app/a.py"), called("dumps", library));
    let (encode, escape, work) = (called("encode", library), called("escape", library), called("work", "/app/a.py"));
    tape.call((1, 0), main);
    tape.call((1, 1000), dumps);
    tape.call((1, 1500), encode);
    tape.call((1, 1600), work);
    tape.end((1, 1900));
    tape.call((1, 2000), escape);
    tape.end((1, 2000 + hidden));
    tape.end((1, 2100 + hidden));
    tape.end((1, 2200 + hidden));
    tape.end((1, 4000 + hidden));
    tape.recording()
}

/// Returns the amount that pictures state, computed from the profile with everything visible.
fn amount(recording: &Recording) -> String {
    let all = profiled(recording, &AggregateOptions { view: Some(View::all().clone()), ..AggregateOptions::default() });
    let total: i64 = all.iter().filter(|(path, _)| path.len() == 1).map(|(_, cost)| cost.2).sum();
    let is_hidden = |path: &[String]| path.last().is_some_and(|name| name == "encode" || name == "escape");
    let hidden: i64 = all.iter().filter(|(path, _)| is_hidden(path)).map(|(_, cost)| cost.1).sum();
    format!("{:.1}% ({:.2} us)", hidden as f64 / total as f64 * 100.0, hidden as f64 / 1000.0)
}

fn caption(amounts: &str) -> String {
    format!("hidden inside libraries and the interpreter, counted for callers: {amounts}; --all or all=True shows it")
}

#[test]
fn pictures_state_the_hidden_share_of_the_whole() {
    let recording = program(5000);
    let expected = caption(&amount(&recording));
    assert!(expected.contains("58.9% (5.30 us)"), "{expected}");
    let in_order = ExportOptions { time_order: true, ..ExportOptions::default() };
    let dot = ExportOptions { view: Some(View::default()), ..ExportOptions::default() };
    let pictures = [
        (Format::Flamegraph, ExportOptions::default()),
        (Format::Flamegraph, in_order),
        (Format::Callgraph, ExportOptions::default()),
        (Format::Dot, dot),
    ];
    for (format, options) in pictures {
        let text = exported_text(&recording, format, &options);
        assert!(text.contains(&expected), "{format:?}: {expected}");
        let all = ExportOptions { view: Some(View::all().clone()), ..options };
        assert!(!exported_text(&recording, format, &all).contains("hidden inside"), "{format:?}");
    }
}

#[test]
fn a_picture_of_a_difference_states_both_shares() {
    let (before, after) = (program(1000), program(5000));
    let expected = caption(&format!("{} before, {} after", amount(&before), amount(&after)));
    let options = ExportOptions { before: Some(&before), ..ExportOptions::default() };
    let text = exported_text(&after, Format::Flamegraph, &options);
    assert!(text.contains(&expected), "{expected}");
}
