//! A flame graph: boxes as wide as what they stand for cost, what was called beside or below what called it. Nothing
//! outside the file is needed to look at it, to zoom and to search.

mod chosen;
mod differential;
mod draw;
mod merged;
mod spans;
mod time_order;

use std::io::Write;

use stackweave_profile::{Diff, FrameKind};

use crate::error::ExportError;
use crate::source::Source;
use crate::svg::{Named, subject};

/// A box without its text. Lengths are shares of the whole width.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FlameBox {
    left: f64,
    width: f64,
    row: u32,
    /// What it stands for, as whoever made it knows.
    item: u32,
    /// Whether nothing is above it.
    is_first: bool,
}

/// What is written about a box.
#[derive(Clone, Debug)]
struct About {
    named: Named,
    /// What it cost, a line.
    costs: String,
    /// The class of its colour.
    class: String,
}

/// What a colour means.
#[derive(Clone, Debug)]
struct Legend {
    class: String,
    text: String,
}

/// Everything in the picture but the boxes' texts.
#[derive(Clone, Debug)]
struct Flames {
    title: String,
    subtitle: String,
    legend: Vec<Legend>,
    /// Lines below the boxes.
    notes: Vec<String>,
    /// What calls comes before what is called.
    boxes: Vec<FlameBox>,
    /// How many boxes would be too narrow to see.
    narrow: u64,
}

/// Boxes of a smaller share of the width are not drawn: a tenth of a pixel of a wide screen.
const NARROWEST: f64 = 0.1 / 1200.0;

/// Deeper levels are not drawn.
const DEEPEST: u32 = 2000;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let title = subject(source);
    if source.options().time_order {
        return time_order::write(source, &title, out);
    }
    let profile = source.profile()?;
    match source.before()? {
        Some(before) => {
            let diff = Diff::of(&before, &profile, false)?;
            differential::write(&diff, &title, out)
        }
        None => merged::write(&profile, &title, out),
    }
}

/// The colours of the kinds that there are; none if all are labels, which need no word.
fn kind_legend(kinds: &(impl Iterator<Item = FrameKind> + Clone)) -> Vec<Legend> {
    if kinds.clone().all(|kind| kind == FrameKind::Label) {
        return Vec::new();
    }
    let is_there = |kind: &FrameKind| kinds.clone().any(|other| other == *kind);
    let present = crate::svg::KINDS.iter().filter(|(kind, _)| is_there(kind));
    let legend = |(kind, text): &(FrameKind, &str)| Legend {
        class: format!("{}4", crate::svg::kind_letter(*kind)),
        text: (*text).to_owned(),
    };
    present.map(legend).collect()
}
