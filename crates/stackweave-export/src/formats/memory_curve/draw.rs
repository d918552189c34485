//! Draws the memory of processes over time.

use std::fmt::{self, Write};
use std::ops::Range;

use stackweave_profile::Measure;

use super::gather::{Panel, TagBand};
use super::line::{CurvePoints, LinePoint};
use crate::svg::{Escaped, FONT, fit, text_width};

const STYLE: &str = include_str!("curve.css");

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 24.0;
const HEAD: f64 = 40.0;
const NOTES: f64 = 52.0;
const PLOT: f64 = 300.0;
const AXIS: f64 = 40.0;
/// The height of a row of tags, and the maximum number of rows.
const LANE: f64 = 16.0;
const MAX_LANES: usize = 8;
const TAG_COLOURS: usize = 6;

pub(super) struct CurvePicture<'a> {
    pub(super) title: String,
    pub(super) range: Range<u64>,
    pub(super) panels: &'a [Panel],
}

/// Converts times and bytes to coordinates.
struct Axes {
    range: Range<u64>,
    highest: u64,
    top: f64,
}

#[expect(clippy::cast_precision_loss, reason = "coordinates of a picture")]
impl Axes {
    fn x(&self, time: u64) -> f64 {
        let whole = (self.range.end - self.range.start).max(1);
        let part = time.clamp(self.range.start, self.range.end) - self.range.start;
        LEFT + (WIDTH - LEFT - RIGHT) * (part as f64 / whole as f64)
    }

    fn y(&self, bytes: u64) -> f64 {
        self.top + PLOT * (1.0 - bytes as f64 / self.highest.max(1) as f64)
    }
}

impl CurvePicture<'_> {
    pub(super) fn svg(&self) -> String {
        let mut out = String::with_capacity(1 << 16);
        let done = self.write(&mut out);
        debug_assert!(done.is_ok(), "writing to a string can't fail");
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let height = HEAD + self.panels.iter().map(panel_height).sum::<f64>();
        let title = format!("Memory over time: {}", self.title);
        writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
        write!(out, r#"<svg xmlns="http://www.w3.org/2000/svg" width="100%" viewBox="0 0 {WIDTH} {height}" "#)?;
        writeln!(out, r#"role="group" aria-label="{}" font-family="{FONT}">"#, Escaped(&title))?;
        writeln!(out, "<title>{}</title>\n<style>\n{STYLE}</style>", Escaped(&title))?;
        writeln!(out, r#"<rect class="page" width="100%" height="100%"/>"#)?;
        let shown = fit(&title, WIDTH - 20.0, 16.0);
        writeln!(out, r#"<text class="title" x="10" y="26">{}</text>"#, Escaped(&shown))?;
        let mut top = HEAD;
        for panel in self.panels {
            self.write_panel(out, panel, top)?;
            top += panel_height(panel);
        }
        writeln!(out, "</svg>")
    }

    fn write_panel(&self, out: &mut String, panel: &Panel, top: f64) -> fmt::Result {
        writeln!(out, r#"<g class="panel">"#)?;
        let mut y = top + 12.0;
        if self.panels.len() > 1 {
            let title = fit(&panel.title, WIDTH - 20.0, 11.0);
            writeln!(out, r#"<text x="10" y="{y}">{}</text>"#, Escaped(&title))?;
        }
        y += 16.0;
        writeln!(out, r#"<text class="note" x="10" y="{y}">{}</text>"#, Escaped(&summary(panel)))?;
        write_legend(out, panel, y)?;
        let plot = top + NOTES + lanes_height(panel);
        let lines = panel.devices.values().chain([&panel.heap, &panel.rss]);
        let highest = lines.filter_map(|line| line.highest).chain(panel.peak).map(|point| point.bytes).max();
        let highest = highest.unwrap_or(0).max(1);
        let axes = Axes { range: self.range.clone(), highest: highest.saturating_add(highest / 12), top: plot };
        write_tags(out, panel, &axes, top + NOTES)?;
        write_axes(out, &axes)?;
        write_area(out, &panel.heap, &axes)?;
        for (device, line) in &panel.devices {
            write_line(out, ("device", &format!("device {device}")), line, &axes)?;
        }
        write_line(out, ("rss", "resident"), &panel.rss, &axes)?;
        write_line(out, ("heap", "allocated"), &panel.heap, &axes)?;
        if let Some(peak) = panel.peak {
            write_peak(out, peak, &axes)?;
        }
        writeln!(out, "</g>")
    }
}

fn lanes(panel: &Panel) -> Vec<u32> {
    let mut threads: Vec<u32> = panel.tags.iter().map(|tag| tag.thread).collect();
    threads.dedup();
    threads.truncate(MAX_LANES);
    threads
}

#[expect(clippy::cast_precision_loss, reason = "at most MAX_LANES")]
fn lanes_height(panel: &Panel) -> f64 {
    lanes(panel).len() as f64 * LANE
}

fn panel_height(panel: &Panel) -> f64 {
    NOTES + lanes_height(panel) + PLOT + AXIS
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn bytes(bytes: u64) -> String {
    Measure::AllocatedBytes.text(bytes as f64)
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn time(ns: u64) -> String {
    if ns == 0 { "0".to_owned() } else { Measure::WallTime.text(ns as f64) }
}

fn summary(panel: &Panel) -> String {
    let peak = panel.peak.map(|peak| format!("peak {} at {}", bytes(peak.bytes), time(peak.time)));
    let end = panel.heap.last.map(|last| format!("{} at the end", bytes(last.bytes)));
    let rss = panel.rss.highest.map(|rss| format!("resident up to {}", bytes(rss.bytes)));
    let devices = panel.devices.iter().filter_map(|(device, line)| Some((device, line.highest?)));
    let devices = devices.map(|(device, highest)| format!("device {device} up to {}", bytes(highest.bytes)));
    [peak, end, rss].into_iter().flatten().chain(devices).collect::<Vec<_>>().join("; ")
}

fn write_legend(out: &mut String, panel: &Panel, y: f64) -> fmt::Result {
    let mut entries = vec![("heap", "allocated", !panel.heap.is_empty()), ("rss", "resident", !panel.rss.is_empty())];
    entries.push(("device", "devices", !panel.devices.is_empty()));
    let mut x = WIDTH - RIGHT;
    for (class, text, _) in entries.into_iter().rev().filter(|(_, _, is_there)| *is_there) {
        x -= text_width(text, 11.0);
        writeln!(out, r#"<text class="note" x="{x:.1}" y="{y}">{text}</text>"#)?;
        x -= 24.0;
        writeln!(out, r#"<path class="{class}" d="M{x:.1} {:.1}h18"/>"#, y - 4.0)?;
        x -= 14.0;
    }
    Ok(())
}

/// Draws a band for each tag, in one row for each thread with tags.
fn write_tags(out: &mut String, panel: &Panel, axes: &Axes, top: f64) -> fmt::Result {
    let lanes = lanes(panel);
    let mut colours: Vec<&str> = Vec::new();
    for TagBand { name, thread, from, to } in &panel.tags {
        let Some(lane) = (0_u32..).zip(&lanes).find(|(_, of)| *of == thread).map(|(lane, _)| lane) else { continue };
        let colour = colours.iter().position(|known| known == name).unwrap_or_else(|| {
            colours.push(name);
            colours.len() - 1
        });
        let (x, width) = (axes.x(*from), (axes.x(*to) - axes.x(*from)).max(0.5));
        let y = top + f64::from(lane) * LANE;
        let about = format!("{name}\n{} to {}", time(*from), time(*to));
        write!(out, r#"<g class="tag"><title>{}</title>"#, Escaped(&about))?;
        let class = colour % TAG_COLOURS;
        write!(out, r#"<rect class="tag{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{}"/>"#, LANE - 2.0)?;
        if width > 30.0 {
            let shown = fit(name, width - 6.0, 10.0);
            write!(out, r#"<text class="name" x="{:.1}" y="{:.1}">{}</text>"#, x + 3.0, y + 10.5, Escaped(&shown))?;
        }
        writeln!(out, "</g>")?;
    }
    Ok(())
}

fn write_axes(out: &mut String, axes: &Axes) -> fmt::Result {
    let (right, bottom) = (WIDTH - RIGHT, axes.top + PLOT);
    let step = byte_step(axes.highest);
    for bytes_at in ticks(0..axes.highest, step) {
        let y = axes.y(bytes_at);
        writeln!(out, r#"<path class="grid" d="M{LEFT} {y:.1}H{right}"/>"#)?;
        let text = if bytes_at == 0 { "0".to_owned() } else { bytes(bytes_at) };
        let x = LEFT - 8.0;
        writeln!(out, r#"<text class="note" text-anchor="end" x="{x}" y="{:.1}">{text}</text>"#, y + 4.0)?;
    }
    let Range { start, end } = axes.range;
    let step = time_step(end - start);
    for at in ticks(start..end, step) {
        let x = axes.x(at);
        writeln!(out, r#"<path class="axis" d="M{x:.1} {bottom}v4"/>"#)?;
        writeln!(
            out,
            r#"<text class="note" text-anchor="middle" x="{x:.1}" y="{}">{}</text>"#,
            bottom + 17.0,
            time(at)
        )?;
    }
    writeln!(out, r#"<path class="axis" d="M{LEFT} {}V{bottom}H{right}"/>"#, axes.top)
}

/// Returns the multiples of a step in a range, with its end, without overflow.
fn ticks(range: Range<u64>, step: u64) -> impl Iterator<Item = u64> {
    let first = range.start.checked_next_multiple_of(step);
    std::iter::successors(first, move |tick| tick.checked_add(step)).take_while(move |tick| *tick <= range.end)
}

/// Returns the step for four to eight ticks, a power of two.
fn byte_step(highest: u64) -> u64 {
    (highest / 4).max(1).next_power_of_two() / 2 + u64::from(highest < 8)
}

/// Returns the step for at most ten ticks: 1, 2 or 5 times a power of ten.
fn time_step(duration: u64) -> u64 {
    let least = duration.div_ceil(10).max(1);
    let power = 10_u64.pow(least.ilog10());
    [1, 2, 5].map(|times| times * power).into_iter().find(|step| *step >= least).unwrap_or(power * 10)
}

/// Returns the path along the points, each of which lasts until the next, up to the end of the range.
fn path(line: &CurvePoints, axes: &Axes) -> Option<String> {
    let mut text = String::new();
    for LinePoint { time, bytes } in line.points() {
        let (x, y) = (axes.x(time), axes.y(bytes));
        let done = if text.is_empty() { write!(text, "M{x:.1} {y:.1}") } else { write!(text, "H{x:.1}V{y:.1}") };
        debug_assert!(done.is_ok(), "writing to a string can't fail");
    }
    (!text.is_empty()).then(|| format!("{text}H{:.1}", axes.x(axes.range.end)))
}

fn write_line(out: &mut String, (class, name): (&str, &str), line: &CurvePoints, axes: &Axes) -> fmt::Result {
    let Some(path) = path(line, axes) else { return Ok(()) };
    writeln!(out, r#"<path class="{class}" d="{path}"><title>{}</title></path>"#, Escaped(name))
}

fn write_area(out: &mut String, line: &CurvePoints, axes: &Axes) -> fmt::Result {
    let (Some(path), Some(first)) = (path(line, axes), line.points().next()) else { return Ok(()) };
    let bottom = axes.top + PLOT;
    writeln!(out, r#"<path class="area" d="{path}V{bottom}H{:.1}z"/>"#, axes.x(first.time))
}

fn write_peak(out: &mut String, peak: LinePoint, axes: &Axes) -> fmt::Result {
    let (x, y) = (axes.x(peak.time), axes.y(peak.bytes));
    let text = format!("{} at {}", bytes(peak.bytes), time(peak.time));
    let is_right = x + 12.0 + text_width(&text, 11.0) < WIDTH - RIGHT;
    let (anchor, text_x) = if is_right { ("start", x + 8.0) } else { ("end", x - 8.0) };
    writeln!(out, r#"<path class="leader" d="M{x:.1} {y:.1}V{}"/>"#, axes.top + PLOT)?;
    writeln!(out, r#"<circle class="peak" cx="{x:.1}" cy="{y:.1}" r="3.5"/>"#)?;
    let text_y = (y - 6.0).max(axes.top + 10.0);
    writeln!(
        out,
        r#"<text class="peak" text-anchor="{anchor}" x="{text_x:.1}" y="{text_y:.1}">{}</text>"#,
        Escaped(&text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_ticks_is_limited() {
        for highest in [1, 2, 3, 7, 8, 100, 1023, 1024, 5_000_000, 123_456_789_012] {
            let ticks = highest / byte_step(highest);
            assert!((ticks <= 9) && (ticks >= 4 || highest < 8), "{highest}: {ticks}");
        }
        for duration in [1, 9, 10, 11, 999, 12_345, 5_000_000_000, 86_400_000_000_000] {
            let ticks = duration / time_step(duration);
            assert!(ticks <= 10 && (ticks >= 3 || duration < 10), "{duration}: {ticks}");
        }
        assert_eq!([1, 10, 100, 1000, 60_000_000_000].map(time_step), [1, 1, 10, 100, 10_000_000_000]);
    }
}
