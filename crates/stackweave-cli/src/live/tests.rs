//! Tests of the screen, cell by cell, and of keys.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use stackweave_profile::live::TopRow;
use stackweave_profile::{CallStatistics, CodeOrigin, FrameKind, Function, Measure};

use super::app::{App, KeyAction};
use super::draw::draw;
use super::snapshot::{LiveSnapshot, RecordingState};

fn row(name: &str, self_time: i64, total: i64, calls: u64) -> TopRow {
    let function = Function {
        kind: FrameKind::Python,
        name: name.into(),
        qualname: None,
        filename: Some(Arc::from(format!("/src/{name}.py"))),
        module: None,
        first_line: Some(7),
        origin: CodeOrigin::Program,
    };
    TopRow {
        function,
        cost: CallStatistics { calls, primitive_calls: calls, self_cost: self_time, total, total_of_all: total },
    }
}

fn snapshot() -> LiveSnapshot {
    let mut snapshot = LiveSnapshot {
        state: RecordingState::Recording,
        elapsed: Duration::from_secs(83),
        file_bytes: 3 << 20,
        processes: 1,
        threads: 2,
        events: 2_469_134,
        has_calls: true,
        ..LiveSnapshot::default()
    };
    snapshot.calls.rows = vec![
        row("parse", 300_000_000, 400_000_000, 12),
        row("main", 100_000_000, 1_000_000_000, 1),
        row("load", 600_000_000, 600_000_000, 1_234_567),
    ];
    snapshot.calls.total = 1_000_000_000;
    snapshot.calls.begun = 1_234_567;
    snapshot.calls.rate = vec![100, 400_000, 800_000, 5];
    snapshot
}

fn with_memory(mut snapshot: LiveSnapshot) -> LiveSnapshot {
    snapshot.has_memory = true;
    snapshot.memory.rows = vec![row("grow", 3 << 20, 3 << 20, 40), row("keep", 1 << 20, 4 << 20, 2)];
    snapshot.memory.total = 4 << 20;
    snapshot.memory.measure = Some(Measure::LiveBytes);
    snapshot.memory.live_bytes = 4 << 20;
    snapshot.memory.peak_bytes = 9 << 20;
    snapshot.memory.curve = vec![1, 9, 4];
    snapshot
}

fn app(snapshot: LiveSnapshot) -> App {
    let mut app = App::new(Path::new("/tmp/run.swv"), true, false);
    app.take(Some(snapshot));
    app
}

fn drawn(app: &mut App, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, app)).unwrap();
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let line = |y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..area.height).map(line).collect()
}

fn shown(app: &mut App) -> Vec<String> {
    lines(&drawn(app, 100, 24))
}

fn press(app: &mut App, code: KeyCode) -> KeyAction {
    app.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn type_in(app: &mut App, text: &str) {
    for letter in text.chars() {
        assert_eq!(press(app, KeyCode::Char(letter)), KeyAction::Nothing);
    }
}

/// Returns the names of the functions, from the top.
fn functions(app: &mut App) -> Vec<String> {
    let names = ["parse", "main", "load", "grow", "keep"];
    let of = |line: &String| names.into_iter().find(|name| line.contains(&format!("{name}.py:7")));
    shown(app).iter().filter_map(of).map(str::to_owned).collect()
}

#[test]
fn functions_with_the_highest_cost_are_on_top() {
    let lines = shown(&mut app(snapshot()));
    assert_eq!(lines[0], " run.swv ● recording  1:23");
    assert_eq!(lines[1], " 1,234,567 calls · 800k/s · 2 threads · 2.47M events in 3.00 MiB");
    assert_eq!(lines[2], " calls per second, at most 800k");
    let table = lines.iter().position(|line| line.contains("function")).unwrap();
    assert!(lines[table + 1].starts_with("   600 ms   60% ███████▎"), "{lines:#?}");
    assert!(lines[table + 1].ends_with("600 ms   60%   1.23M  load  load.py:7"), "{lines:#?}");
    assert!(lines[23].contains("? help  q quit"));
}

#[test]
fn keys_change_the_order() {
    let mut app = app(snapshot());
    assert_eq!(functions(&mut app), ["load", "parse", "main"]);
    press(&mut app, KeyCode::Char('t'));
    assert_eq!(functions(&mut app), ["main", "load", "parse"]);
    press(&mut app, KeyCode::Char('c'));
    assert_eq!(functions(&mut app), ["load", "parse", "main"]);
    press(&mut app, KeyCode::Char('s'));
    assert_eq!(functions(&mut app), ["load", "parse", "main"]);
}

#[test]
fn a_filter_is_typed_applied_and_removed() {
    let mut app = app(snapshot());
    type_in(&mut app, "/maq");
    assert!(functions(&mut app).is_empty(), "q is a letter here");
    assert!(shown(&mut app).iter().any(|line| line.contains("nothing matches the filter")));
    press(&mut app, KeyCode::Backspace);
    assert_eq!(functions(&mut app), ["main"]);
    press(&mut app, KeyCode::Enter);
    assert_eq!((functions(&mut app), shown(&mut app)[23].contains("only ma")), (vec!["main".to_owned()], true));
    press(&mut app, KeyCode::Esc);
    assert_eq!(functions(&mut app).len(), 3);
}

#[test]
fn a_pause_keeps_the_snapshot() {
    let mut app = app(snapshot());
    assert_eq!(press(&mut app, KeyCode::Char('p')), KeyAction::UpdateOptions);
    assert!(app.options().is_paused);
    app.take(Some(LiveSnapshot::default()));
    assert_eq!(functions(&mut app).len(), 3);
    assert!(shown(&mut app)[0].contains("paused"));
    assert_eq!(press(&mut app, KeyCode::Char(' ')), KeyAction::UpdateOptions);
    app.take(Some(LiveSnapshot::default()));
    assert!(functions(&mut app).is_empty());
}

#[test]
fn long_tables_scroll_to_their_end() {
    let mut long = snapshot();
    long.calls.rows = (0..100).map(|number| row(&format!("f{number:02}"), 1000 - number, 1000, 1)).collect();
    let mut app = app(long);
    let first = |app: &mut App| {
        let lines = shown(app);
        let table = lines.iter().position(|line| line.contains("function")).unwrap();
        lines[table + 1].rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(first(&mut app), "f00.py:7");
    press(&mut app, KeyCode::Down);
    press(&mut app, KeyCode::Down);
    press(&mut app, KeyCode::Up);
    assert_eq!(first(&mut app), "f01.py:7");
    press(&mut app, KeyCode::End);
    let last = first(&mut app);
    press(&mut app, KeyCode::PageDown);
    assert_eq!((first(&mut app), last.as_str() > "f70"), (last, true));
    press(&mut app, KeyCode::Home);
    assert_eq!(first(&mut app), "f00.py:7");
}

#[test]
fn memory_is_shown_if_it_is_all_there_is_and_on_request() {
    let mut alone = with_memory(snapshot());
    alone.has_calls = false;
    let mut app = App::new(Path::new("run.swv"), true, false);
    assert_eq!(app.take(Some(alone)), KeyAction::UpdateOptions);
    assert_eq!(functions(&mut app), ["grow", "keep"]);
    let lines = shown(&mut app);
    assert!(lines[1].starts_with(" 4.00 MiB live · peak 9.00 MiB"), "{lines:#?}");
    assert!(lines[2].contains("live memory, at most 9 B"));
    for (key, measure) in [('a', Measure::AllocatedBytes), ('k', Measure::PeakBytes), ('l', Measure::LiveBytes)] {
        assert_eq!((press(&mut app, KeyCode::Char(key)), app.options().measure), (KeyAction::UpdateOptions, measure));
    }

    let mut both = self::app(with_memory(snapshot()));
    assert_eq!(functions(&mut both), ["load", "parse", "main"]);
    assert_eq!(press(&mut both, KeyCode::Tab), KeyAction::UpdateOptions);
    assert_eq!(functions(&mut both), ["grow", "keep"]);
    assert_eq!(both.take(Some(with_memory(snapshot()))), KeyAction::Nothing, "the choice is kept");
    press(&mut both, KeyCode::Tab);
    assert_eq!(functions(&mut both), ["load", "parse", "main"]);
}

#[test]
fn without_colours_no_cell_is_coloured() {
    let mut coloured = app(snapshot());
    let mut plain = app(snapshot());
    plain.colour = false;
    let colours = |buffer: &Buffer| buffer.content.iter().filter(|cell| cell.fg != Color::Reset).count();
    assert!(colours(&drawn(&mut coloured, 100, 24)) > 20);
    let buffer = drawn(&mut plain, 100, 24);
    assert_eq!(colours(&buffer), 0);
    assert!(buffer.content.iter().any(|cell| cell.modifier.contains(Modifier::BOLD)));
}

#[test]
fn every_screen_size_can_be_drawn() {
    for (width, height) in [(1, 1), (10, 3), (40, 10), (80, 24), (300, 80)] {
        for keys in ["", "?", "/x", "t"] {
            let mut app = app(with_memory(snapshot()));
            app.set_output(Some(vec!["hello".to_owned(); 9]));
            keys.chars().for_each(|key| {
                press(&mut app, KeyCode::Char(key));
            });
            assert_eq!(drawn(&mut app, width, height).area.width, width);
        }
    }
    let small = lines(&drawn(&mut app(snapshot()), 40, 10));
    assert!(small[3].contains("600 ms   60%  load  load.py:7"), "{small:#?}");
}

#[test]
fn anomalies_are_shown() {
    let mut unusual = snapshot();
    unusual.behind = 3_200_000;
    unusual.lost = 17;
    unusual.remarks = vec!["run.swv was truncated: it is read from the start again.".to_owned()];
    let lines = shown(&mut app(unusual));
    assert!(lines[0].ends_with("3.20M events behind") && lines[1].ends_with("17 lost"), "{lines:#?}");
    assert!(lines[2].contains("was truncated"));
    let states = [
        (RecordingState::Waiting, "waiting for the recording"),
        (RecordingState::Ring, "written when the program ends"),
        (RecordingState::Killed, "killed"),
    ];
    for (state, words) in states {
        assert!(shown(&mut app(LiveSnapshot { state, ..snapshot() }))[0].contains(words));
    }
}

#[test]
fn after_the_end_only_quitting_is_offered() {
    let mut app = app(LiveSnapshot { state: RecordingState::Ended, ..snapshot() });
    let lines = shown(&mut app);
    assert!(lines[0].contains("ended") && lines[23].contains("recording ended: q quits"), "{lines:#?}");
    assert_eq!(press(&mut app, KeyCode::Char('q')), KeyAction::Quit);
}

#[test]
fn an_interrupt_goes_to_the_program_while_it_runs() {
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app(snapshot()).key(interrupt), KeyAction::Quit);
    let mut running = App::new(Path::new("run.swv"), true, true);
    assert_eq!(running.key(interrupt), KeyAction::Interrupt);
    running.program_runs = Some(false);
    assert_eq!(running.key(interrupt), KeyAction::Quit);
}

#[test]
fn the_last_lines_of_the_output_are_shown() {
    let mut app = app(snapshot());
    app.set_output(Some((0..20).map(|number| format!("line {number}")).collect()));
    let lines = shown(&mut app);
    let printed: Vec<&String> = lines.iter().filter(|line| line.starts_with(" line ")).collect();
    assert_eq!(printed, [" line 16", " line 17", " line 18", " line 19"]);
}
