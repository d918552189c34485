//! What recordings say about memory, as text.

mod chart;
mod devices;
mod groups;
mod stacks;
mod summary;

use std::io::{self, Write};

use clap::ValueEnum;
use stackweave_profile::memory::MemoryReport;
use stackweave_profile::{Profile, View};

use crate::text::rows::Layout;
use crate::text::style::Style;

/// What [`write_heap`] shows of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum HeapView {
    /// The most important of all that follows
    #[default]
    Summary,
    /// The stacks that had most when the program had most
    Peak,
    /// The stacks that took what was not freed
    Leaks,
    /// The stacks that took most of what was freed again soon
    Temporary,
    /// Blocks by size
    Sizes,
    /// Threads
    Threads,
    /// Tags
    Tags,
    /// A curve over time
    Time,
    /// The memory of devices: what was reserved, pools, and requests that failed
    Devices,
}

/// How [`write_heap`] shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapOptions {
    /// What.
    pub view: HeapView,
    /// How many stacks, threads or tags.
    pub limit: usize,
    /// Which frames.
    pub frames: View,
    /// How many columns a line may have.
    pub width: Option<usize>,
    /// Whether the colours of a terminal are used.
    pub colour: bool,
}

impl Default for HeapOptions {
    fn default() -> Self {
        Self { view: HeapView::Summary, limit: 10, frames: View::default(), width: None, colour: false }
    }
}

/// Writes what was asked for.
pub fn write_heap(out: &mut dyn Write, report: &MemoryReport, options: &HeapOptions) -> io::Result<()> {
    let mut heap = Heap { out, report, options };
    match options.view {
        HeapView::Summary => heap.summary(),
        HeapView::Peak => heap.stacks(Part::Peak, options.limit),
        HeapView::Leaks => heap.stacks(Part::Leaks, options.limit),
        HeapView::Temporary => heap.stacks(Part::Temporary, options.limit),
        HeapView::Sizes => heap.sizes(),
        HeapView::Threads => heap.threads(options.limit),
        HeapView::Tags => heap.tags(options.limit),
        HeapView::Time => heap.time(chart::TALL),
        HeapView::Devices => heap.devices(false, options.limit),
    }
}

struct Heap<'a> {
    out: &'a mut dyn Write,
    report: &'a MemoryReport,
    options: &'a HeapOptions,
}

/// Blocks that stacks are shown of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Peak,
    Leaks,
    Temporary,
}

impl Part {
    fn profile(self, report: &MemoryReport) -> &Profile {
        match self {
            Self::Peak => &report.peak,
            Self::Leaks => &report.live,
            Self::Temporary => &report.temporary,
        }
    }
}

impl Heap<'_> {
    /// Writes the head of a part: what it is, and a word about it.
    fn head(&mut self, title: &str, more: &str) -> io::Result<()> {
        let mut line = String::new();
        Style::Head.put(&mut line, title, self.options.colour);
        if !more.is_empty() {
            line.push_str("  ");
            Style::Dim.put(&mut line, more, self.options.colour);
        }
        writeln!(self.out, "{line}")
    }

    fn layout(&self) -> Layout {
        Layout { width: self.options.width, colour: self.options.colour, are_paths: false }
    }

    /// `, estimated` if figures are.
    fn estimated(&self) -> &'static str {
        if self.report.sample_every().is_some() { ", estimated" } else { "" }
    }
}

/// A bar of so many columns, as long as its share, filled up with spaces.
fn bar(share: f64, columns: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[expect(clippy::cast_precision_loss, reason = "a number of columns")]
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of at most as many columns")]
    let eighths = eighths as usize;
    let eighths = if eighths == 0 && share > 0.0 { 1 } else { eighths };
    let text = format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8]);
    format!("{text:<columns$}")
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_are_as_long_as_their_share_and_never_nothing() {
        assert_eq!([bar(0.0, 4), bar(1e-9, 4), bar(0.5, 4), bar(1.0, 4)], ["    ", "▏   ", "██  ", "████"]);
        assert_eq!(bar(0.71, 4), "██▉ ");
    }
}
