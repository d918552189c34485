//! Draws the live view: the rate of events, a table, and the output of the program.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::app::{App, KeyboardMode};
use super::draw_rows::{head, row};
use super::format::{bytes, clock, count, plural, short_count};
use super::snapshot::RecordingState;

/// The minimum heights of the screen for the curve and for the output of the program.
const HEIGHT_WITH_CURVE: u16 = 14;
const HEIGHT_WITH_OUTPUT: u16 = 18;
const CURVE: u16 = 3;
const OUTPUT: u16 = 5;

const HELP: [&str; 14] = [
    "s  sort by self time",
    "t  sort by total time, with callees",
    "c  sort by calls, or by blocks of memory",
    "/  show only functions that match: a part of a name, file or module",
    "h  show or hide frames inside the interpreter and libraries",
    "Tab  switch between calls and memory, if both are recorded",
    "l  memory that is live now",
    "a  all allocated memory",
    "k  memory that was live at the peak",
    "p, space  pause or resume",
    "arrows, Page Up, Page Down, Home, End  scroll",
    "Ctrl-C  interrupt the program",
    "q  quit; the program continues",
    "any key closes this help",
];

pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let mut rest = frame.area();
    line(frame, &mut rest, title(app));
    if let Some(keys) = take_bottom(&mut rest, 1) {
        frame.render_widget(Paragraph::new(keys_line(app)), keys);
    }
    if app.mode == KeyboardMode::Help {
        let lines: Vec<Line<'_>> = HELP.iter().map(|text| Line::raw(format!("  {text}"))).collect();
        frame.render_widget(Paragraph::new(lines), rest);
        return;
    }
    line(frame, &mut rest, figures(app));
    if let Some(remark) = app.snapshot.remarks.first() {
        line(frame, &mut rest, Line::styled(format!(" {remark}"), app.paint(Color::Yellow)));
    }
    let height = frame.area().height;
    if height >= HEIGHT_WITH_OUTPUT && !app.output.is_empty() {
        draw_output(frame, &mut rest, app);
    }
    if height >= HEIGHT_WITH_CURVE {
        draw_curve(frame, &mut rest, app);
    }
    draw_table(frame, rest, app);
}

impl App {
    /// Returns a colour, if colours are enabled.
    pub(super) fn paint(&self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }
}

fn title(app: &App) -> Line<'static> {
    let (state, colour) = match (app.snapshot.state, app.program_runs) {
        (RecordingState::Ended, Some(true)) => ("the recording has ended, the program is still running", Color::Yellow),
        (RecordingState::Ended, _) => ("ended", Color::Cyan),
        (RecordingState::Killed, _) => ("killed: the recording is truncated but readable", Color::Red),
        (_, Some(false)) => ("the program has ended", Color::Cyan),
        (RecordingState::Waiting, _) => ("waiting for the recording", Color::Yellow),
        (RecordingState::Ring, _) => ("flight recorder: written when the program ends", Color::Yellow),
        (RecordingState::Recording, _) => ("recording", Color::Green),
    };
    let mut spans = vec![
        Span::styled(format!(" {} ", app.title), Style::new().add_modifier(Modifier::BOLD)),
        Span::styled(format!("● {state}"), app.paint(colour)),
        Span::raw(format!("  {}", clock(app.snapshot.elapsed))),
    ];
    if app.options.is_paused {
        spans.push(Span::styled("  paused", app.paint(Color::Yellow)));
    }
    if app.snapshot.behind > 0 {
        let text = format!("  {} events behind", short_count(app.snapshot.behind));
        spans.push(Span::styled(text, app.paint(Color::Red)));
    }
    Line::from(spans)
}

fn figures(app: &App) -> Line<'static> {
    let snapshot = &app.snapshot;
    let mut parts = Vec::new();
    if app.options.shows_memory {
        let memory = &snapshot.memory;
        let about = if memory.is_estimated { "about " } else { "" };
        parts.push(format!("{about}{} live", bytes(memory.live_bytes)));
        parts.push(format!("peak {}", bytes(memory.peak_bytes)));
        parts.push(format!("{} live blocks", short_count(memory.live_blocks)));
        parts.push(format!("{} allocated", bytes(memory.allocated_bytes)));
    } else {
        parts.push(format!("{} calls", count(snapshot.calls.begun)));
        parts.push(format!("{}/s", short_count(rate_now(app))));
    }
    parts.push(plural(snapshot.threads, "thread"));
    if snapshot.processes > 1 {
        parts.push(plural(snapshot.processes, "process"));
    }
    parts.push(format!("{} events in {}", short_count(snapshot.events), bytes(snapshot.file_bytes)));
    let mut spans = vec![Span::raw(format!(" {}", parts.join(" · ")))];
    if snapshot.lost > 0 {
        spans.push(Span::styled(format!(" · {} lost", short_count(snapshot.lost)), app.paint(Color::Red)));
    }
    Line::from(spans)
}

/// Returns the number of calls in the last complete second.
fn rate_now(app: &App) -> u64 {
    match app.snapshot.calls.rate.as_slice() {
        [.., last, _] | [last] => *last,
        [] => 0,
    }
}

fn keys_line(app: &App) -> Line<'static> {
    let dim = Style::new().add_modifier(Modifier::DIM);
    match app.mode {
        KeyboardMode::Filter => Line::raw(format!(" /{}▏  Enter keeps it, Esc shows all", app.filter)),
        _ if app.is_over() => Line::styled(" recording ended: q quits", Style::new().add_modifier(Modifier::BOLD)),
        _ => {
            let filter = if app.filter.is_empty() { String::new() } else { format!(" only {}  ", app.filter) };
            let tab = if app.snapshot.has_calls && app.snapshot.has_memory { "Tab calls/memory  " } else { "" };
            let measures = if app.options.shows_memory { "l live  a allocated  k peak  " } else { "" };
            Line::styled(
                format!(
                    " {filter}{tab}{measures}s self  t total  c calls  / filter  h internals  p pause  ? help  q quit"
                ),
                dim,
            )
        }
    }
}

fn draw_curve(frame: &mut Frame<'_>, rest: &mut Rect, app: &App) {
    let (label, values) = if app.options.shows_memory {
        (" live memory", spread(&app.snapshot.memory.curve, rest.width.saturating_sub(2).into()))
    } else {
        // The current second is incomplete.
        let rate = &app.snapshot.calls.rate;
        let is_under_way = !app.is_over() && rate.len() > 1;
        let over = &rate[..rate.len() - usize::from(is_under_way)];
        (" calls per second", spread(over, rest.width.saturating_sub(2).into()))
    };
    let highest = values.iter().copied().max().unwrap_or(0);
    let most = if app.options.shows_memory { bytes(highest) } else { short_count(highest) };
    line(frame, rest, Line::styled(format!("{label}, at most {most}"), Style::new().add_modifier(Modifier::DIM)));
    if let Some(area) = take_top(rest, CURVE) {
        let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
        frame.render_widget(Sparkline::default().data(&values).style(app.paint(Color::Green)), inner);
    }
}

/// Reduces the values to a number of columns, each the highest of the values that it stands for.
fn spread(values: &[u64], columns: usize) -> Vec<u64> {
    let each = values.len().div_ceil(columns.max(1)).max(1);
    values.chunks(each).map(|part| part.iter().copied().max().unwrap_or(0)).collect()
}

fn draw_output(frame: &mut Frame<'_>, rest: &mut Rect, app: &App) {
    let Some(area) = take_bottom(rest, OUTPUT) else { return };
    let dim = Style::new().add_modifier(Modifier::DIM);
    let shown = app.output.len().saturating_sub(usize::from(OUTPUT) - 1);
    let head = Line::styled(" output of the program (printed in full at the end)", dim);
    let lines = app.output[shown..].iter().map(|text| Line::raw(format!(" {text}")));
    frame.render_widget(Paragraph::new(std::iter::once(head).chain(lines).collect::<Vec<_>>()), area);
}

fn draw_table(frame: &mut Frame<'_>, mut rest: Rect, app: &mut App) {
    let heads = head(app, rest.width.into());
    line(frame, &mut rest, heads);
    let fitting = usize::from(rest.height);
    app.fitting = fitting.max(1);
    let (lines, first) = {
        let rows = app.rows();
        let first = app.first.min(rows.len().saturating_sub(fitting));
        let lines: Vec<Line<'_>> =
            rows.iter().skip(first).take(fitting).map(|each| row(app, each, rest.width.into())).collect();
        (lines, first)
    };
    if lines.is_empty() && fitting > 0 {
        let text = if app.filter.is_empty() { " nothing to show yet" } else { " nothing matches the filter" };
        frame.render_widget(Paragraph::new(text), rest);
    } else {
        frame.render_widget(Paragraph::new(lines), rest);
    }
    app.first = first;
}

fn line(frame: &mut Frame<'_>, rest: &mut Rect, text: Line<'_>) {
    if let Some(area) = take_top(rest, 1) {
        frame.render_widget(Paragraph::new(text), area);
    }
}

fn take_top(rest: &mut Rect, height: u16) -> Option<Rect> {
    let taken = Rect { height, ..*rest };
    let left = rest.height.checked_sub(height)?;
    *rest = Rect { y: rest.y + height, height: left, ..*rest };
    Some(taken)
}

fn take_bottom(rest: &mut Rect, height: u16) -> Option<Rect> {
    rest.height = rest.height.checked_sub(height)?;
    Some(Rect { y: rest.y + rest.height, height, ..*rest })
}
