//! A chart of memory over time, drawn with characters.

use std::io;

use stackweave_core::EventKind;
use stackweave_profile::Measure;
use stackweave_profile::memory::{MemoryTimeline, TimelinePoint};

use super::HeapText;
use super::groups::bytes;
use crate::text::style::{Style, width};

/// The number of lines in the summary, and in the view of the chart alone.
pub(super) const SHORT: usize = 6;
pub(super) const TALL: usize = 16;
/// The number of columns if lines may have any length.
const COLUMNS: usize = 72;
const MIN_COLUMNS: usize = 20;
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const RSS: char = '•';

impl HeapText<'_> {
    /// Draws the live memory and the resident memory of the process over time.
    pub(super) fn time(&mut self, lines: usize) -> io::Result<()> {
        let timeline = &self.report.timeline;
        let (heap, rss) = timeline.highest();
        let is_own = self.report.device == EventKind::OWN_DEVICE;
        let (used, had) = if is_own { ("heap", "resident (RSS)") } else { ("in use", "reserved") };
        let mut more: Vec<String> = heap.iter().map(|heap| format!("█ {used}, up to {}", bytes(*heap))).collect();
        more.extend(rss.iter().map(|rss| format!("{RSS} {had}, up to {}", bytes(*rss))));
        let more = format!("{}{}", more.join("; "), self.estimated());
        let highest = heap.max(rss).unwrap_or(0);
        if highest == 0 {
            self.head("Over time", "")?;
            return writeln!(self.out, "  unknown");
        }
        self.head("Over time", &more)?;
        let (top, middle) = (bytes(highest), bytes(highest / 2));
        let margin = width(&top).max(width(&middle)).max(3);
        let columns = self.options.width.map_or(COLUMNS, |width| width.saturating_sub(margin + 3)).min(120);
        let columns = columns.max(MIN_COLUMNS);
        let time = &self.report.time;
        let cells = Cells::of(timeline, (time.start, time.end), columns);
        for line in 0..lines {
            let label = match line {
                0 => &*top,
                line if line == lines / 2 => &*middle,
                _ => "",
            };
            let drawn = cells.line(lines - 1 - line, (lines, highest), self.options.colour);
            writeln!(self.out, "{label:>margin$} │{drawn}")?;
        }
        writeln!(self.out, "{:>margin$} └{}", "0 B", "─".repeat(columns))?;
        let (from, to) = (seconds(time.start), seconds(time.end));
        let between = columns.saturating_sub(width(&from) + width(&to));
        writeln!(self.out, "{:margin$}  {from}{}{to}", "", " ".repeat(between))
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn seconds(ns: u64) -> String {
    if ns == 0 {
        return "0 s".to_owned();
    }
    Measure::WallTime.text(ns as f64)
}

/// The highest values in each column.
struct Cells {
    heap: Vec<Option<u64>>,
    rss: Vec<Option<u64>>,
}

impl Cells {
    fn of(timeline: &MemoryTimeline, (start, end): (u64, u64), columns: usize) -> Self {
        let mut cells = Self { heap: vec![None; columns], rss: vec![None; columns] };
        let span = u128::from(end.saturating_sub(start).max(1));
        let column = |time: u64| {
            let at = u128::from(time.saturating_sub(start)) * columns as u128 / span;
            usize::try_from(at).unwrap_or(usize::MAX).min(columns - 1)
        };
        let mut points = timeline.points.iter().peekable();
        while let Some(point) = points.next() {
            let until = points.peek().map_or(columns - 1, |next| column(next.time_ns));
            for at in column(point.time_ns)..=until {
                cells.raise(at, point);
            }
        }
        cells
    }

    fn raise(&mut self, at: usize, point: &TimelinePoint) {
        self.heap[at] = self.heap[at].max(point.heap);
        self.rss[at] = self.rss[at].max(point.rss);
    }

    /// Returns the line with this number from the bottom; the top line stands for `highest`.
    fn line(&self, number: usize, (lines, highest): (usize, u64), colour: bool) -> String {
        let eighths = |value: u64| {
            let all = u128::from(value) * lines as u128 * 8;
            usize::try_from(all.div_ceil(u128::from(highest))).unwrap_or(usize::MAX)
        };
        let cell = |(heap, rss): (&Option<u64>, &Option<u64>)| {
            // A value is drawn in the line that contains its top.
            let is_rss = rss.is_some_and(|rss| eighths(rss).saturating_sub(1) / 8 == number);
            let level = heap.map_or(0, |heap| eighths(heap).saturating_sub(number * 8).min(8));
            if is_rss { (RSS, Style::Warm) } else { (LEVELS[level], Style::Good) }
        };
        let mut line = String::new();
        let mut run = (String::new(), Style::Plain);
        for (letter, style) in self.heap.iter().zip(&self.rss).map(cell) {
            if style != run.1 {
                run.1.put(&mut line, &run.0, colour);
                run = (String::new(), style);
            }
            run.0.push(letter);
        }
        let (text, style) = run;
        style.put(&mut line, text.trim_end(), colour);
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lasts_until_the_next_one() {
        let point = |time_ns, heap, rss| TimelinePoint { time_ns, heap: Some(heap), rss };
        let points = vec![point(0, 8, None), point(50, 16, Some(20)), point(70, 4, Some(4))];
        let cells = Cells::of(&MemoryTimeline { points }, (0, 100), 10);
        assert_eq!(cells.heap, [8, 8, 8, 8, 8, 16, 16, 16, 4, 4].map(Some));
        let drawn: Vec<String> = (0..2).rev().map(|line| cells.line(line, (2, 20), false)).collect();
        assert_eq!(drawn, ["     •••", "▇▇▇▇▇███••"]);
    }
}
