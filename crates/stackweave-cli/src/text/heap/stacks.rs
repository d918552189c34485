//! The stacks that have most.

use std::io;

use stackweave_profile::memory::{StackRow, top_stacks};
use stackweave_profile::{FrameIndex, Profile};

use super::{Heap, Part, bar};
use crate::text::place::name_and_place;
use crate::text::rows::{Row, write_rows};
use crate::text::style::Style;
use crate::text::tree::{count_text, float};
use crate::text::values::{percentage, share};

/// So many callers are named under a stack.
const CALLERS: usize = 4;
const BAR: usize = 12;

impl Heap<'_> {
    /// Writes the stacks that have most of a part.
    pub(super) fn stacks(&mut self, part: Part, limit: usize) -> io::Result<()> {
        let profile = part.profile(self.report).view(&self.options.frames);
        let total = profile.measure().text(float(profile.total()));
        let (title, more) = match part {
            Part::Peak => ("Live at the peak", String::new()),
            Part::Leaks if self.report.is_part => {
                ("Not freed", ", allocated in this time and not freed in it".to_owned())
            }
            Part::Leaks => ("Not freed", String::new()),
            Part::Temporary => ("Temporary", format!(", freed {}", self.soon())),
        };
        let more = format!("{total}{more}{}", self.estimated());
        self.head(title, &more)?;
        let stacks = top_stacks(&profile);
        if stacks.is_empty() {
            return writeln!(self.out, "  nothing");
        }
        let greatest = stacks.first().map_or(0, |stack| stack.own);
        let mut rows = Vec::new();
        for stack in stacks.iter().take(limit) {
            put_stack(&mut rows, &profile, stack, greatest);
        }
        let heads = ["bytes", "share", "", "blocks"];
        let layout = self.layout();
        write_rows(self.out, heads, "allocated by", &rows, layout)?;
        match stacks.len().saturating_sub(limit) {
            0 => Ok(()),
            hidden => {
                let rest = stacks.iter().skip(limit).map(|stack| stack.own).fold(0, i64::saturating_add);
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

/// Adds the lines of a stack: the function that took the blocks, and under it who called that.
fn put_stack(rows: &mut Vec<Row<4>>, profile: &Profile, stack: &StackRow, greatest: i64) {
    let of_all = share(stack.own, profile.total());
    let style = Style::of_share(of_all);
    let (name, place) = match stack.frames.first() {
        Some(frame) => place_of(profile, *frame),
        None => ("(outside of what is shown)".to_owned(), String::new()),
    };
    rows.push(Row {
        numbers: [
            (profile.measure().text(float(stack.own)), style),
            (percentage(of_all), style),
            (bar(share(stack.own, greatest), BAR), Style::Warm),
            (count_text(stack.blocks), Style::Plain),
        ],
        guides: String::new(),
        name: (name, if style == Style::Hot { Style::Head } else { Style::Plain }),
        place,
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
    rows.push(Row {
        numbers: [empty(), empty(), (" ".repeat(BAR), Style::Plain), empty()],
        guides: "  ← ".to_owned(),
        name: (text.join(" ← "), Style::Dim),
        place: String::new(),
    });
}

fn place_of(profile: &Profile, frame: FrameIndex) -> (String, String) {
    name_and_place(profile.functions(), profile.functions().frame(frame))
}

pub(super) fn one_line(profile: &Profile, frame: FrameIndex) -> String {
    match place_of(profile, frame) {
        (name, place) if place.is_empty() => name,
        (name, place) => format!("{name} {place}"),
    }
}
