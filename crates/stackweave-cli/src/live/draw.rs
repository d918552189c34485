//! Draws the screen: what is recorded, how fast, a table, and what the program prints.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::app::{App, Mode};
use super::draw_rows::{head, row};
use super::picture::State;
use super::texts::{bytes, clock, count, plural, short_count};

/// The curve is shown on screens of at least this height, and what the program prints on these.
const HEIGHT_WITH_CURVE: u16 = 14;
const HEIGHT_WITH_OUTPUT: u16 = 18;
const CURVE: u16 = 3;
const OUTPUT: u16 = 5;

const HELP: [&str; 14] = [
    "s  sort by self: what a function took itself",
    "t  sort by total: with all that it called",
    "c  sort by calls, or by blocks of memory",
    "/  show only functions that match: a part of a name, file or module",
    "h  show the internals of the interpreter and of libraries, or hide them",
    "Tab  calls or memory, if both are recorded",
    "l  memory that is live now",
    "a  all memory that was allocated",
    "k  memory that was live at the peak",
    "p, space  stop refreshing, or go on",
    "arrows, Page Up, Page Down, Home, End  scroll",
    "Ctrl-C  interrupt the program",
    "q  leave: the program goes on",
    "any key closes this help",
];

pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let mut rest = frame.area();
    line(frame, &mut rest, title(app));
    if let Some(keys) = take_bottom(&mut rest, 1) {
        frame.render_widget(Paragraph::new(keys_line(app)), keys);
    }
    if app.mode == Mode::Help {
        let lines: Vec<Line<'_>> = HELP.iter().map(|text| Line::raw(format!("  {text}"))).collect();
        frame.render_widget(Paragraph::new(lines), rest);
        return;
    }
    line(frame, &mut rest, figures(app));
    if let Some(remark) = app.picture.remarks.first() {
        line(frame, &mut rest, Line::styled(format!(" {remark}"), app.paint(Color::Yellow)));
    }
    let height = frame.area().height;
    if height >= HEIGHT_WITH_OUTPUT && !app.printed.is_empty() {
        draw_output(frame, &mut rest, app);
    }
    if height >= HEIGHT_WITH_CURVE {
        draw_curve(frame, &mut rest, app);
    }
    draw_table(frame, rest, app);
}

impl App {
    /// A colour, where colours are wanted.
    pub(super) fn paint(&self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }
}

fn title(app: &App) -> Line<'static> {
    let (state, colour) = match (app.picture.state, app.program_runs) {
        (State::Ended, Some(true)) => ("the recording has ended, the program runs on", Color::Yellow),
        (State::Ended, _) => ("ended", Color::Cyan),
        (State::Killed, _) => ("killed: the recording has no end, and can be read all the same", Color::Red),
        (_, Some(false)) => ("the program has ended", Color::Cyan),
        (State::Waiting, _) => ("waiting for the recording", Color::Yellow),
        (State::Ring, _) => ("a ring: it is written when the program ends", Color::Yellow),
        (State::Recording, _) => ("recording", Color::Green),
    };
    let mut spans = vec![
        Span::styled(format!(" {} ", app.title), Style::new().add_modifier(Modifier::BOLD)),
        Span::styled(format!("● {state}"), app.paint(colour)),
        Span::raw(format!("  {}", clock(app.picture.elapsed))),
    ];
    if app.wanted.is_paused {
        spans.push(Span::styled("  paused", app.paint(Color::Yellow)));
    }
    if app.picture.behind > 0 {
        let text = format!("  {} events behind", short_count(app.picture.behind));
        spans.push(Span::styled(text, app.paint(Color::Red)));
    }
    Line::from(spans)
}

fn figures(app: &App) -> Line<'static> {
    let picture = &app.picture;
    let mut parts = Vec::new();
    if app.wanted.shows_memory {
        let memory = &picture.memory;
        let about = if memory.is_estimated { "about " } else { "" };
        parts.push(format!("{about}{} live", bytes(memory.live_bytes)));
        parts.push(format!("peak {}", bytes(memory.peak_bytes)));
        parts.push(format!("{} live blocks", short_count(memory.live_blocks)));
        parts.push(format!("{} allocated", bytes(memory.allocated_bytes)));
    } else {
        parts.push(format!("{} calls", count(picture.calls.begun)));
        parts.push(format!("{}/s", short_count(rate_now(app))));
    }
    parts.push(plural(picture.threads, "thread"));
    if picture.processes > 1 {
        parts.push(plural(picture.processes, "process"));
    }
    parts.push(format!("{} events in {}", short_count(picture.events), bytes(picture.file_bytes)));
    let mut spans = vec![Span::raw(format!(" {}", parts.join(" · ")))];
    if picture.lost > 0 {
        spans.push(Span::styled(format!(" · {} lost", short_count(picture.lost)), app.paint(Color::Red)));
    }
    Line::from(spans)
}

/// Calls in the last second that is over.
fn rate_now(app: &App) -> u64 {
    match app.picture.calls.rate.as_slice() {
        [.., last, _] | [last] => *last,
        [] => 0,
    }
}

fn keys_line(app: &App) -> Line<'static> {
    let dim = Style::new().add_modifier(Modifier::DIM);
    match app.mode {
        Mode::Filter => Line::raw(format!(" /{}▏  Enter keeps it, Esc shows all", app.filter)),
        _ if app.is_over() => Line::styled(" that is all: q quits", Style::new().add_modifier(Modifier::BOLD)),
        _ => {
            let filter = if app.filter.is_empty() { String::new() } else { format!(" only {}  ", app.filter) };
            let tab = if app.picture.has_calls && app.picture.has_memory { "Tab calls/memory  " } else { "" };
            let own = if app.wanted.shows_memory { "l live  a allocated  k peak  " } else { "" };
            Line::styled(
                format!(" {filter}{tab}{own}s self  t total  c calls  / filter  h internals  p pause  ? help  q quit"),
                dim,
            )
        }
    }
}

fn draw_curve(frame: &mut Frame<'_>, rest: &mut Rect, app: &App) {
    let (label, values) = if app.wanted.shows_memory {
        (" live memory", spread(&app.picture.memory.curve, rest.width.saturating_sub(2).into()))
    } else {
        // The second that is under way is not over.
        let rate = &app.picture.calls.rate;
        let is_under_way = !app.is_over() && rate.len() > 1;
        let over = &rate[..rate.len() - usize::from(is_under_way)];
        (" calls per second", spread(over, rest.width.saturating_sub(2).into()))
    };
    let highest = values.iter().copied().max().unwrap_or(0);
    let most = if app.wanted.shows_memory { bytes(highest) } else { short_count(highest) };
    line(frame, rest, Line::styled(format!("{label}, at most {most}"), Style::new().add_modifier(Modifier::DIM)));
    if let Some(area) = take_top(rest, CURVE) {
        let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
        frame.render_widget(Sparkline::default().data(&values).style(app.paint(Color::Green)), inner);
    }
}

/// The values in at most so many columns, each the highest of those that it stands for.
fn spread(values: &[u64], columns: usize) -> Vec<u64> {
    let each = values.len().div_ceil(columns.max(1)).max(1);
    values.chunks(each).map(|part| part.iter().copied().max().unwrap_or(0)).collect()
}

fn draw_output(frame: &mut Frame<'_>, rest: &mut Rect, app: &App) {
    let Some(area) = take_bottom(rest, OUTPUT) else { return };
    let dim = Style::new().add_modifier(Modifier::DIM);
    let shown = app.printed.len().saturating_sub(usize::from(OUTPUT) - 1);
    let head = Line::styled(" output of the program (all of it is printed at the end)", dim);
    let lines = app.printed[shown..].iter().map(|text| Line::raw(format!(" {text}")));
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
