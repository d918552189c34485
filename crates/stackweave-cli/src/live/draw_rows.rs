//! The rows of the table.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use stackweave_profile::Measure;
use stackweave_profile::live::TopRow;

use super::app::{App, LiveSort};
use super::format::{location, printable, share, short_count, value};

/// The columns that fit.
#[derive(Clone, Copy, Debug)]
struct VisibleColumns {
    bar: usize,
    has_total: bool,
    has_calls: bool,
}

const VALUE: usize = 9;
const SHARE: usize = 6;
const CALLS: usize = 8;
/// The shares from which on a row is highlighted.
const HOT: f64 = 0.25;
const WARM: f64 = 0.05;

impl VisibleColumns {
    fn of(width: usize) -> Self {
        let bar = match width {
            100.. => 12,
            70.. => 6,
            _ => 0,
        };
        Self { bar, has_total: width >= 50, has_calls: width >= 60 }
    }

    fn width(self) -> usize {
        let bar = if self.bar > 0 { self.bar + 1 } else { 0 };
        let total = if self.has_total { VALUE + SHARE } else { 0 };
        VALUE + SHARE + bar + total + if self.has_calls { CALLS } else { 0 } + 2
    }
}

/// Returns the measure of the rows, which may still be that of the previous option.
fn measure(app: &App) -> Measure {
    if !app.options.shows_memory {
        return Measure::WallTime;
    }
    app.snapshot.memory.measure.unwrap_or(app.options.measure)
}

/// Returns the name of a measure during the recording.
const fn label(measure: Measure) -> &'static str {
    match measure {
        Measure::LiveBytes => "live bytes",
        Measure::PeakBytes => "bytes live at the peak",
        other => other.describe(),
    }
}

pub(super) fn head(app: &App, width: usize) -> Line<'static> {
    let columns = VisibleColumns::of(width);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let chosen = bold.add_modifier(Modifier::REVERSED);
    let style = |sort: LiveSort| if app.sort == sort { chosen } else { bold };
    let mut spans = cell("self", VALUE, style(LiveSort::SelfCost));
    spans.push(Span::raw(" ".repeat(SHARE)));
    if columns.bar > 0 {
        spans.push(Span::raw(" ".repeat(columns.bar + 1)));
    }
    if columns.has_total {
        spans.extend(cell("total", VALUE, style(LiveSort::Total)));
        spans.push(Span::raw(" ".repeat(SHARE)));
    }
    if columns.has_calls {
        let calls = if app.options.shows_memory { "blocks" } else { "calls" };
        spans.extend(cell(calls, CALLS, style(LiveSort::Calls)));
    }
    let text = if app.options.shows_memory {
        format!("  function, by {}", label(measure(app)))
    } else {
        "  function".to_owned()
    };
    spans.push(Span::styled(text, bold));
    Line::from(spans)
}

pub(super) fn row(app: &App, row: &TopRow, width: usize) -> Line<'static> {
    let columns = VisibleColumns::of(width);
    let measure = measure(app);
    let total = if app.options.shows_memory { app.snapshot.memory.total } else { app.snapshot.calls.total };
    let (self_share, all) = (share(row.cost.self_cost, total), share(row.cost.total, total));
    let style = heat(app, self_share);
    let mut spans = cell(&value(measure, row.cost.self_cost), VALUE, style);
    spans.extend(cell(&percent(self_share), SHARE, style));
    if columns.bar > 0 {
        spans.push(Span::raw(" "));
        spans.push(Span::styled(bar(self_share, columns.bar), style));
    }
    if columns.has_total {
        let style = heat(app, all);
        spans.extend(cell(&value(measure, row.cost.total), VALUE, style));
        spans.extend(cell(&percent(all), SHARE, style));
    }
    if columns.has_calls {
        spans.extend(cell(&short_count(row.cost.calls), CALLS, Style::new()));
    }
    let left = width.saturating_sub(columns.width());
    let name = cut(&printable(row.function.full_name()), left);
    let left = left.saturating_sub(name.chars().count() + 2);
    spans.push(Span::raw(format!("  {name}")));
    let location = location(&row.function);
    if !location.is_empty() && location.chars().count() <= left {
        spans.push(Span::styled(format!("  {location}"), Style::new().add_modifier(Modifier::DIM)));
    }
    Line::from(spans)
}

fn heat(app: &App, share: f64) -> Style {
    match share {
        share if share >= HOT => app.paint(Color::Red).add_modifier(Modifier::BOLD),
        share if share >= WARM => app.paint(Color::Yellow),
        _ => Style::new(),
    }
}

/// Aligns a text to the right of its column.
fn cell(text: &str, width: usize, style: Style) -> Vec<Span<'static>> {
    let room = width.saturating_sub(text.chars().count());
    vec![Span::raw(" ".repeat(room)), Span::styled(text.to_owned(), style)]
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// Draws a bar, in eighths of a column.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a small number of columns"
)]
fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share * width as f64 * 8.0).round() as usize;
    let mut text = "█".repeat((eighths / 8).min(width));
    if eighths / 8 < width {
        text.push(EIGHTHS[eighths % 8]);
    }
    let used = text.chars().count();
    text + &" ".repeat(width.saturating_sub(used))
}

/// Cuts a text to a number of columns, and keeps the end of it, which is the more specific part of a name.
fn cut(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    if width == 0 { String::new() } else { format!("…{}", text.chars().skip(length + 1 - width).collect::<String>()) }
}
