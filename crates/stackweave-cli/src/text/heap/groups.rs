//! Memory by size, thread and tag.

use std::io;

use stackweave_profile::Measure;
use stackweave_profile::memory::{Figures, NamedFigures};

use super::{HeapText, bar};
use crate::text::rows::{StyledText, TextRow, write_rows};
use crate::text::style::{Style, printable};
use crate::text::values::count;

const BAR: usize = 16;

impl HeapText<'_> {
    /// Writes the number of blocks of each size.
    pub(super) fn sizes(&mut self) -> io::Result<()> {
        let sizes = &self.report.sizes;
        let more = format!("allocations up to each size{}", self.estimated());
        self.head("Sizes", &more)?;
        if sizes.is_empty() {
            return writeln!(self.out, "  unknown: sizes are counted for all threads and tags together");
        }
        let greatest = sizes.iter().map(|(_, figures)| figures.allocations).max().unwrap_or(0);
        let row = |(most, figures): &(u64, Figures)| {
            let numbers = [
                plain(bytes(*most)),
                (bar(ratio(figures.allocations, greatest), BAR), Style::Warm),
                plain(number(figures.allocations)),
                plain(bytes(figures.bytes)),
                plain(bytes(figures.peak_bytes)),
                plain(bytes(figures.live_bytes)),
            ];
            TextRow { numbers, guides: String::new(), name: plain(String::new()), location: String::new() }
        };
        let rows: Vec<TextRow<6>> = sizes.iter().map(row).collect();
        let layout = self.layout();
        write_rows(self.out, ["up to", "", "allocations", "bytes", "at peak", "at end"], "", &rows, layout)
    }

    /// Writes the memory of each thread.
    pub(super) fn threads(&mut self, limit: usize) -> io::Result<()> {
        let more = format!("by allocating thread{}", self.estimated());
        self.head("Threads", &more)?;
        let name = |thread: &NamedFigures| match &*thread.name {
            "" => format!("thread {}", thread.number),
            name => format!("{name} ({})", thread.number),
        };
        self.groups(&self.report.threads, "thread", limit, name)
    }

    /// Writes the memory of each tag.
    pub(super) fn tags(&mut self, limit: usize) -> io::Result<()> {
        let more = format!("blocks allocated under each tag{}", self.estimated());
        self.head("Tags", &more)?;
        let name = |tag: &NamedFigures| if tag.name.is_empty() { "(none)".to_owned() } else { tag.name.to_string() };
        self.groups(&self.report.tags, "tag", limit, name)
    }

    fn groups(
        &mut self,
        groups: &[NamedFigures],
        head: &str,
        limit: usize,
        name: impl Fn(&NamedFigures) -> String,
    ) -> io::Result<()> {
        if groups.is_empty() {
            return writeln!(self.out, "  nothing");
        }
        let row = |group: &NamedFigures| {
            let of = &group.figures;
            let share = ratio(of.peak_bytes, self.report.totals.figures.peak_bytes);
            let numbers = [
                (bytes(of.peak_bytes), Style::of_share(share)),
                plain(bytes(of.live_bytes)),
                plain(bytes(of.bytes)),
                plain(number(of.allocations)),
                plain(number(of.temporary)),
            ];
            TextRow { numbers, guides: String::new(), name: plain(printable(&name(group))), location: String::new() }
        };
        let rows: Vec<TextRow<5>> = groups.iter().take(limit).map(row).collect();
        let heads = ["at peak", "at end", "bytes", "allocations", "temporary"];
        let layout = self.layout();
        write_rows(self.out, heads, head, &rows, layout)?;
        self.hidden(groups.len().saturating_sub(limit))
    }
}

pub(super) fn plain(text: String) -> StyledText {
    (text, Style::Plain)
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
pub(super) fn bytes(number: u64) -> String {
    Measure::LiveBytes.text(number as f64)
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
pub(super) fn number(number: u64) -> String {
    count(number as f64)
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
