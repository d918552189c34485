//! A flame graph of lines of text: the whole on top, each function below its callers, as wide as it cost.

mod label;
mod layout;
mod paint;
mod tree;

use std::io::{self, Write};

use crate::text::flame::label::label;
use crate::text::flame::layout::{Piece, What, lines};
use crate::text::flame::paint::{Paint, WHOLE, put_box, put_small};
use crate::text::style::{printable, width};
use crate::text::tree::float;
use crate::text::values::{percentage, share};

pub use paint::Palette;
pub use tree::{FlameBox, FlameShape, FlameTree};

/// How [`write_flame`] draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlameOptions {
    /// How many columns the whole takes.
    pub width: usize,
    /// Which colours there are.
    pub palette: Palette,
}

impl FlameOptions {
    /// What costs less than this has no column of its own: for [`FlameShape::least`]. `whole` is the cost of what is drawn.
    pub fn least(&self, whole: i64) -> i64 {
        layout::least(whole, self.width)
    }
}

/// Writes the lines of a flame graph, and below them what could not be shown.
pub fn write_flame(out: &mut dyn Write, tree: &FlameTree, options: &FlameOptions) -> io::Result<()> {
    let mut has_small = false;
    for pieces in lines(tree, options.width) {
        has_small |= pieces.iter().any(|piece| matches!(piece.what, What::Small(_)));
        let mut line = String::new();
        put_line(&mut line, tree, &pieces, options.palette);
        writeln!(out, "{}", line.trim_end_matches(' '))?;
    }
    let deeper = tree.deepest - tree.depth();
    let mut notes = Vec::new();
    if deeper > 0 {
        notes.push(format!("{deeper} more level{} below; --depth shows them", if deeper == 1 { "" } else { "s" }));
    }
    if has_small {
        notes.push("⋯ is what is too narrow for a box".to_owned());
    }
    if notes.is_empty() { Ok(()) } else { writeln!(out, "({})", notes.join("; ")) }
}

fn put_line(line: &mut String, tree: &FlameTree, pieces: &[Piece], palette: Palette) {
    let mut at = 0;
    for (place, piece) in pieces.iter().enumerate() {
        line.extend(std::iter::repeat_n(' ', piece.start - at));
        at = piece.end;
        let is_last = pieces.get(place + 1).is_none_or(|next| next.start > piece.end);
        match piece.what {
            What::Small(_) => put_small(line, piece.width(), palette),
            What::Box(place) if piece.width() > 0 => {
                let (text, paint) = text_and_paint(tree, place, piece.width() - 1);
                put_box(line, (&text, paint), piece.width(), is_last, palette);
            }
            What::Box(_) => {}
        }
    }
}

fn text_and_paint(tree: &FlameTree, place: usize, room: usize) -> (String, Paint) {
    let of = &tree.boxes[place];
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
    (label(&printable(function.full_name()), &percentage(share(of.value, whole)), room), Paint::of(function))
}
