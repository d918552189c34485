//! The stacks with the most memory.

use std::io;

use stackweave_profile::memory::{StackRow, top_stacks};
use stackweave_profile::{FrameIndex, Profile};

use super::{BlockSet, HeapText, bar};
use crate::text::location::name_and_location;
use crate::text::rows::{TextRow, write_rows};
use crate::text::style::Style;
use crate::text::tree::{count_text, float};
use crate::text::values::{percentage, share};

/// The number of callers that are named below a stack.
const CALLERS: usize = 4;
const BAR: usize = 12;

impl HeapText<'_> {
    /// Writes the stacks with the most memory in a set of blocks.
    pub(super) fn stacks(&mut self, set: BlockSet, limit: usize) -> io::Result<()> {
        let profile = set.profile(self.report);
        let total = profile.measure().text(float(profile.total()));
        let (title, more) = match set {
            BlockSet::Peak => ("Live at the peak", String::new()),
            BlockSet::Leaks if self.report.is_part => {
                ("Leak candidates", ", allocated in this time and not freed in it".to_owned())
            }
            BlockSet::Leaks => ("Leak candidates", String::new()),
            BlockSet::Temporary => ("Temporary", format!(", freed {}", self.soon())),
        };
        let more = format!("{total}{more}{}", self.estimated());
        self.head(title, &more)?;
        let stacks = top_stacks(profile);
        if stacks.is_empty() {
            return writeln!(self.out, "  nothing");
        }
        let greatest = stacks.first().map_or(0, |stack| stack.self_cost);
        let mut rows = Vec::new();
        for stack in stacks.iter().take(limit) {
            put_stack(&mut rows, profile, stack, greatest);
        }
        let heads = ["bytes", "share", "", "blocks"];
        let layout = self.layout();
        write_rows(self.out, heads, "allocated by", &rows, layout)?;
        match stacks.len().saturating_sub(limit) {
            0 => Ok(()),
            hidden => {
                let rest = stacks.iter().skip(limit).map(|stack| stack.self_cost).fold(0, i64::saturating_add);
                writeln!(self.out, "({hidden} more, with {})", profile.measure().text(float(rest)))
            }
        }
    }

    fn soon(&self) -> String {
        let headers = self.report.processes.iter().filter_map(|process| process.header);
        match self.report.temporary_after.or_else(|| headers.map(|header| header.temporary).max()).unwrap_or(1) {
            0 => "before their thread allocated anything else".to_owned(),
            1 => "after at most 1 other allocation of their thread".to_owned(),
            number => format!("after at most {number} other allocations of their thread"),
        }
    }
}

/// Adds the lines of a stack: the function that allocated the blocks, and its callers.
fn put_stack(rows: &mut Vec<TextRow<4>>, profile: &Profile, stack: &StackRow, greatest: i64) {
    let of_all = share(stack.self_cost, profile.total());
    let style = Style::of_share(of_all);
    let (name, location) = match stack.frames.first() {
        Some(frame) => location_of(profile, *frame),
        None => ("(outside the visible frames)".to_owned(), String::new()),
    };
    rows.push(TextRow {
        numbers: [
            (profile.measure().text(float(stack.self_cost)), style),
            (percentage(of_all), style),
            (bar(share(stack.self_cost, greatest), BAR), Style::Warm),
            (count_text(stack.blocks), Style::Plain),
        ],
        guides: String::new(),
        name: (name, if style == Style::Hot { Style::Head } else { Style::Plain }),
        location,
    });
    let callers = stack.frames.get(1..).unwrap_or_default();
    if callers.is_empty() {
        return;
    }
    let mut text: Vec<String> = callers.iter().take(CALLERS).map(|frame| one_line(profile, *frame)).collect();
    if callers.len() > CALLERS {
        text.push(format!("{} more", callers.len() - CALLERS));
    }
    let empty = || (String::new(), Style::Plain);
    rows.push(TextRow {
        numbers: [empty(), empty(), (" ".repeat(BAR), Style::Plain), empty()],
        guides: "  ← ".to_owned(),
        name: (text.join(" ← "), Style::Dim),
        location: String::new(),
    });
}

fn location_of(profile: &Profile, frame: FrameIndex) -> (String, String) {
    name_and_location(profile.functions(), profile.functions().frame(frame))
}

pub(super) fn one_line(profile: &Profile, frame: FrameIndex) -> String {
    match location_of(profile, frame) {
        (name, location) if location.is_empty() => name,
        (name, location) => format!("{name} {location}"),
    }
}
