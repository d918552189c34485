//! Phases as text.

use stackweave_cli::text::{PhaseSort, PhasesOptions, write_phases};
use stackweave_profile::timing::{TimingReport, read_timing};
use stackweave_profile::{AggregateOptions, View};
use stackweave_store::label;
use stackweave_tapes::phases::PhaseTape;
use stackweave_tapes::span;

const MS: u64 = 1_000_000;

fn report(phases: PhaseTape) -> TimingReport {
    let options = AggregateOptions::default();
    read_timing(&[phases.tape.process()], &options, &View::default(), None, &mut |_| {}).unwrap()
}

fn compiles() -> TimingReport {
    let long = "TransformerEncoderLayer._scaled_dot_product_attention_with_relative_positions";
    let forward = label("Model.forward", "/srv/project/models/transformer/encoder.py", 120).unwrap();
    let attention = label(long, "/srv/project/models/transformer/attention_with_a_long_name.py", 1204).unwrap();
    let [tracing, backend, lower] = ["bytecode_tracing", "backend_compile", "GraphLowering.run"].map(span);
    let mut tape = PhaseTape::new();
    tape.push_run(0, forward, r#"{"compile_id": "0/0"}"#).push(MS, tracing).push_code(2 * MS, forward, 240, 0);
    for number in 0..3 {
        tape.push_code((10 + 10 * number) * MS, attention, 1200, 1).pop((15 + 10 * number) * MS);
    }
    tape.pop(50 * MS).pop(51 * MS).push(60 * MS, backend).push(70 * MS, lower).pop(180 * MS).pop(260 * MS);
    tape.pop_with(
        300 * MS,
        r#"{"graphs": 1, "restart_reasons": [], "cache_hit": false, "misses": 0, "function": "Model.forward"}"#,
    );
    tape.push_run(
        400 * MS,
        forward,
        r#"{"compile_id": "0/1", "recompile_reason": "tensor 'x' size mismatch at index 0. expected 4, actual 8"}"#,
    );
    tape.push(405 * MS, tracing).push_code(406 * MS, attention, 1200, 2).push(410 * MS, span("guard"));
    tape.leave_open(420 * MS).fail(420 * MS, "").fail(430 * MS, "");
    tape.fail(440 * MS, r#"{"error": "Unsupported: call to \u001b[31mprint with a message that goes on, and on, and on, and on, past every screen"}"#);
    report(tape)
}

fn text(options: &PhasesOptions) -> String {
    let mut text = Vec::new();
    write_phases(&mut text, &compiles(), options).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn runs_come_before_functions() {
    let expected = "Runs  2 runs, 340 ms, 1 failed
 1    300 ms  done    Model.forward  /srv/project/models/transformer/encoder.py:120
       7 phases, 3 deep: GraphLowering.run 110 ms (36.7%), backend_compile 90.0 ms (30.0%), bytecode_tracing 50.0 ms (16.7%)
       compile_id 0/0, graphs 1
 2   40.0 ms  failed  Model.forward  /srv/project/models/transformer/encoder.py:120
       3 phases, 3 deep: bytecode_tracing 15.0 ms (37.5%), guard 10.0 ms (25.0%)
       error: Unsupported: call to \u{fffd}[31mprint with a message that goes on, and on, and on, and on, past every screen
       recompile reason: tensor 'x' size mismatch at index 0. expected 4, actual 8
       compile_id 0/1
";
    let printed = text(&PhasesOptions { only_runs: true, ..PhasesOptions::default() });
    assert_eq!(printed, expected);
    let all = text(&PhasesOptions::default());
    let functions = all.strip_prefix(expected).unwrap();
    let expected = "
Phases  6 functions, 340 ms in total
calls     self           total          self/call  total/call  failed  left open  bytecode  ns/bytecode  function
    1   110 ms  32.4%   110 ms   32.4%     110 ms      110 ms                                            GraphLowering.run
  3/2  98.0 ms  28.8%   340 ms  100.0%    32.7 ms      170 ms       1                  240      136,111  Model.forward  \
/srv/project/models/transformer/encoder.py:120
";
    assert!(functions.starts_with(expected), "{functions}");
}

#[test]
fn lines_fit_on_the_screen() {
    for width in [60, 80, 100, 140] {
        let printed = text(&PhasesOptions { width: Some(width), ..PhasesOptions::default() });
        let longest = printed.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= width, "{width}: {longest}\n{printed}");
    }
    let narrow = text(&PhasesOptions { width: Some(80), ..PhasesOptions::default() });
    assert!(!narrow.contains("self/call") && narrow.contains("ns/bytecode"), "{narrow}");
    assert!(text(&PhasesOptions { width: Some(160), ..PhasesOptions::default() }).contains("self/call"));
}

#[test]
fn functions_are_sorted_and_limited() {
    let first = |sort: PhaseSort| {
        let printed = text(&PhasesOptions { sort, limit: Some(1), ..PhasesOptions::default() });
        assert!(printed.contains("(1 more: --runs shows them)") && printed.ends_with("(5 more)\n"), "{printed}");
        let line = printed.lines().rev().nth(1).unwrap().to_owned();
        ["GraphLowering", "Model.forward", "Transformer"].into_iter().find(|name| line.contains(name)).unwrap()
    };
    assert_eq!(first(PhaseSort::SelfCost), "GraphLowering");
    assert_eq!(first(PhaseSort::Total), "Model.forward");
    assert_eq!(first(PhaseSort::Calls), "Transformer");
    assert_eq!(first(PhaseSort::Failed), "Model.forward");
}

#[test]
fn colours_are_written_only_if_enabled() {
    assert!(!text(&PhasesOptions::default()).contains('\u{1b}'));
    let colourful = text(&PhasesOptions { colour: true, ..PhasesOptions::default() });
    assert!(colourful.contains("\u{1b}[31;1mfailed\u{1b}[0m") && !colourful.contains("[31mprint\u{1b}"), "{colourful}");
}

#[test]
fn empty_columns_are_left_out() {
    let mut tape = PhaseTape::new();
    tape.push(0, span("a")).pop(MS);
    let mut text = Vec::new();
    write_phases(&mut text, &report(tape), &PhasesOptions::default()).unwrap();
    let expected = "Phases  1 function, 1.00 ms in total
calls     self            total          self/call  total/call  function
    1  1.00 ms  100.0%  1.00 ms  100.0%    1.00 ms     1.00 ms  a
";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}
