//! A flame graph as text: the root on top, each function below its caller, with a width according to its cost.

mod label;
mod layout;
mod paint;
mod tree;

use std::io::{self, Write};

use crate::text::flame::label::label;
use crate::text::flame::layout::{LineSegment, SegmentContent, lines};
use crate::text::flame::paint::{BoxColour, WHOLE, put_box, put_small};
use crate::text::style::{printable, width};
use crate::text::tree::float;
use crate::text::values::{percentage, share};

pub use paint::Palette;
pub use tree::{FlameBox, FlameShape, FlameTree};

/// The options of [`write_flame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlameOptions {
    /// The number of columns.
    pub width: usize,
    /// The available colours.
    pub palette: Palette,
}

impl FlameOptions {
    /// Returns the least cost with a column of its own, for [`FlameShape::least`]. `whole` is the cost of the drawn
    /// tree.
    pub fn least(&self, whole: i64) -> i64 {
        layout::least(whole, self.width)
    }
}

/// Writes the lines of a flame graph, and notes about content could not be shown.
pub fn write_flame(out: &mut dyn Write, tree: &FlameTree, options: &FlameOptions) -> io::Result<()> {
    let mut has_small = false;
    for segments in lines(tree, options.width) {
        has_small |= segments.iter().any(|segment| matches!(segment.content, SegmentContent::Small(_)));
        let mut line = String::new();
        put_line(&mut line, tree, &segments, options.palette);
        writeln!(out, "{}", line.trim_end_matches(' '))?;
    }
    let deeper = tree.deepest - tree.depth();
    let mut notes = Vec::new();
    if deeper > 0 {
        notes.push(format!("{deeper} more level{} below; --depth shows them", if deeper == 1 { "" } else { "s" }));
    }
    if has_small {
        notes.push("⋯ stands for boxes that are too narrow".to_owned());
    }
    if notes.is_empty() { Ok(()) } else { writeln!(out, "({})", notes.join("; ")) }
}

fn put_line(line: &mut String, tree: &FlameTree, segments: &[LineSegment], palette: Palette) {
    let mut at = 0;
    for (position, segment) in segments.iter().enumerate() {
        line.extend(std::iter::repeat_n(' ', segment.start - at));
        at = segment.end;
        let is_last = segments.get(position + 1).is_none_or(|next| next.start > segment.end);
        match segment.content {
            SegmentContent::Small(_) => put_small(line, segment.width(), palette),
            SegmentContent::Box(index) if segment.width() > 0 => {
                let (text, paint) = text_and_paint(tree, index, segment.width() - 1);
                put_box(line, (&text, paint), segment.width(), is_last, palette);
            }
            SegmentContent::Box(_) => {}
        }
    }
}

fn text_and_paint(tree: &FlameTree, index: usize, room: usize) -> (String, BoxColour) {
    let of = &tree.boxes[index];
    let whole = tree.boxes[0].value;
    let Some(function) = of.function else {
        let cost = tree.measure.text(float(of.value));
        let counted = tree.measure.describe().trim_start_matches("bytes ");
        let part = if of.value == tree.whole {
            cost.clone()
        } else {
            format!("{cost} of {}", tree.measure.text(float(tree.whole)))
        };
        let texts = [format!("all: {part} {counted}"), format!("all: {part}"), format!("all: {cost}"), cost];
        return (texts.into_iter().find(|text| width(text) <= room).unwrap_or_default(), WHOLE);
    };
    let function = tree.functions.function(function);
    (label(&printable(function.full_name()), &percentage(share(of.value, whole)), room), BoxColour::of(function))
}
