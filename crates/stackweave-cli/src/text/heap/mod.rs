//! The memory of recordings, as text.

mod chart;
mod devices;
mod groups;
mod stacks;
mod summary;

use std::io::{self, Write};

use clap::ValueEnum;
use stackweave_profile::Profile;
use stackweave_profile::memory::MemoryReport;

use crate::text::rows::LineLayout;
use crate::text::style::Style;

/// The views of [`write_heap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum HeapView {
    /// The most important of the views below
    #[default]
    Summary,
    /// The stacks with the most live memory at the peak
    Peak,
    /// The stacks that allocated leak candidates: blocks that were not freed
    Leaks,
    /// The stacks that allocated the most temporary memory
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

/// The options of [`write_heap`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapOptions {
    /// The view.
    pub view: HeapView,
    /// The maximum number of stacks, threads or tags.
    pub limit: usize,
    /// The maximum number of columns of a line.
    pub width: Option<usize>,
    /// Whether to use colours.
    pub colour: bool,
}

impl Default for HeapOptions {
    fn default() -> Self {
        Self { view: HeapView::Summary, limit: 10, width: None, colour: false }
    }
}

/// Writes a view of the report.
pub fn write_heap(out: &mut dyn Write, report: &MemoryReport, options: &HeapOptions) -> io::Result<()> {
    let mut heap = HeapText { out, report, options };
    match options.view {
        HeapView::Summary => heap.summary(),
        HeapView::Peak => heap.stacks(BlockSet::Peak, options.limit),
        HeapView::Leaks => heap.stacks(BlockSet::Leaks, options.limit),
        HeapView::Temporary => heap.stacks(BlockSet::Temporary, options.limit),
        HeapView::Sizes => heap.sizes(),
        HeapView::Threads => heap.threads(options.limit),
        HeapView::Tags => heap.tags(options.limit),
        HeapView::Time => heap.time(chart::TALL),
        HeapView::Devices => heap.devices(false, options.limit),
    }
}

struct HeapText<'a> {
    out: &'a mut dyn Write,
    report: &'a MemoryReport,
    options: &'a HeapOptions,
}

/// A set of blocks that is shown by stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockSet {
    Peak,
    Leaks,
    Temporary,
}

impl BlockSet {
    fn profile(self, report: &MemoryReport) -> &Profile {
        match self {
            Self::Peak => &report.peak,
            Self::Leaks => &report.live,
            Self::Temporary => &report.temporary,
        }
    }
}

impl HeapText<'_> {
    /// Writes a heading.
    fn head(&mut self, title: &str, more: &str) -> io::Result<()> {
        let mut line = String::new();
        Style::Head.put(&mut line, title, self.options.colour);
        if !more.is_empty() {
            line.push_str("  ");
            Style::Dim.put(&mut line, more, self.options.colour);
        }
        writeln!(self.out, "{line}")
    }

    fn layout(&self) -> LineLayout {
        LineLayout { width: self.options.width, colour: self.options.colour, are_paths: false }
    }

    /// Returns `, estimated` if figures are.
    fn estimated(&self) -> &'static str {
        if self.report.sample_every().is_some() { ", estimated" } else { "" }
    }
}

/// Draws a bar with a share of the columns, padded with spaces.
fn bar(share: f64, columns: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[expect(clippy::cast_precision_loss, reason = "a small number of columns")]
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the number of columns")]
    let eighths = eighths as usize;
    let eighths = if eighths == 0 && share > 0.0 { 1 } else { eighths };
    let text = format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8]);
    format!("{text:<columns$}")
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_are_proportional_and_never_empty() {
        assert_eq!([bar(0.0, 4), bar(1e-9, 4), bar(0.5, 4), bar(1.0, 4)], ["    ", "▏   ", "██  ", "████"]);
        assert_eq!(bar(0.71, 4), "██▉ ");
    }
}
