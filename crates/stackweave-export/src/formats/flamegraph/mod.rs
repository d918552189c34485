//! A flame graph: boxes with a width according to their cost, callees below or beside their callers. The file needs
//! nothing else to be viewed, zoomed and searched.

mod differential;
mod draw;
mod hidden_time;
mod merged;
mod spans;
mod time_order;
mod widest_boxes;

use std::io::Write;

use stackweave_profile::{Diff, FrameKind};

use crate::error::ExportError;
use crate::source::Source;
use crate::svg::{FunctionLabel, subject};

/// A box without its text. Lengths are shares of the whole width.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PictureBox {
    left: f64,
    width: f64,
    row: u32,
    /// The index of the box's data; its meaning depends on the kind of flame graph.
    item: u32,
    /// Whether it is in the first row.
    is_first: bool,
}

/// The text and colour of a box.
#[derive(Clone, Debug)]
struct BoxLabel {
    function: FunctionLabel,
    /// The cost, as one line.
    costs: String,
    /// The CSS class of its colour.
    class: String,
}

/// The meaning of a colour.
#[derive(Clone, Debug)]
struct Legend {
    class: String,
    text: String,
}

/// Everything in the picture but the labels of the boxes.
#[derive(Clone, Debug)]
struct Flames {
    title: String,
    subtitle: String,
    legend: Vec<Legend>,
    /// Lines below the boxes.
    notes: Vec<String>,
    /// Callers come before callees.
    boxes: Vec<PictureBox>,
    /// The number of boxes that are too narrow to be visible.
    narrow: u64,
}

/// Boxes with a smaller share of the width are not drawn: a tenth of a pixel of a wide screen.
const MIN_WIDTH: f64 = 0.1 / 1200.0;

/// Deeper levels are not drawn.
const MAX_DEPTH: u32 = 2000;

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

/// Returns the colours of the kinds that occur; none if all are labels, which need no legend.
fn kind_legend(kinds: &(impl Iterator<Item = FrameKind> + Clone)) -> Vec<Legend> {
    if kinds.clone().all(|kind| kind == FrameKind::Span) {
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
