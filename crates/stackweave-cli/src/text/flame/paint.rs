//! Draws the boxes of a line, with colours or borders.

use stackweave_profile::{CodeOrigin, FrameKind, Function};

use crate::text::style::{Style, width};

/// The colours of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// None: boxes have borders.
    #[default]
    Plain,
    /// The 256 standard colours.
    Fixed,
    /// 24-bit colours.
    Full,
}

/// The colour of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoxColour {
    /// Red, green and blue.
    full: [u8; 3],
    /// The nearest of 256 colours.
    fixed: u8,
}

/// The colours of the root and of boxes that are too narrow.
pub(crate) const WHOLE: BoxColour = BoxColour { full: [200, 200, 205], fixed: 252 };
pub(crate) const SMALL: BoxColour = BoxColour { full: [150, 150, 155], fixed: 247 };
const PYTHON: [BoxColour; 4] = [
    BoxColour { full: [255, 183, 77], fixed: 215 },
    BoxColour { full: [255, 202, 110], fixed: 221 },
    BoxColour { full: [250, 160, 85], fixed: 209 },
    BoxColour { full: [240, 200, 130], fixed: 222 },
];
const NATIVE: [BoxColour; 4] = [
    BoxColour { full: [120, 180, 235], fixed: 111 },
    BoxColour { full: [145, 200, 240], fixed: 117 },
    BoxColour { full: [130, 190, 215], fixed: 110 },
    BoxColour { full: [165, 195, 245], fixed: 153 },
];
const LIBRARY: [BoxColour; 4] = [
    BoxColour { full: [225, 205, 165], fixed: 187 },
    BoxColour { full: [215, 195, 155], fixed: 180 },
    BoxColour { full: [230, 215, 185], fixed: 223 },
    BoxColour { full: [210, 200, 170], fixed: 186 },
];
const LABEL: [BoxColour; 4] = [
    BoxColour { full: [150, 205, 150], fixed: 114 },
    BoxColour { full: [170, 215, 150], fixed: 150 },
    BoxColour { full: [140, 200, 170], fixed: 115 },
    BoxColour { full: [185, 215, 170], fixed: 151 },
];

impl BoxColour {
    /// Returns the colour for a function, by its origin and name: equal names always have equal colours.
    pub(crate) fn of(function: &Function) -> Self {
        let family = match (function.kind, function.origin) {
            (FrameKind::Native, _) => NATIVE,
            (FrameKind::Span | FrameKind::Extra, _) => LABEL,
            (_, CodeOrigin::Library | CodeOrigin::Interpreter) => LIBRARY,
            _ => PYTHON,
        };
        let sum =
            function.full_name().bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        family[sum % family.len()]
    }

    fn background(self, palette: Palette) -> String {
        let [red, green, blue] = self.full;
        match palette {
            Palette::Plain => String::new(),
            Palette::Fixed => format!("\x1b[48;5;{}m", self.fixed),
            Palette::Full => format!("\x1b[48;2;{red};{green};{blue}m"),
        }
    }
}

const BLACK: &str = "\x1b[38;5;16m";
const GREY: &str = "\x1b[38;5;240m";
const RESET: &str = "\x1b[0m";

/// Draws a box of at least one column: its left border, the text and the background. With `is_last`, no box follows on
/// its right, and a box without colours gets a right border.
pub(crate) fn put_box(
    line: &mut String,
    (text, paint): (&str, BoxColour),
    columns: usize,
    is_last: bool,
    palette: Palette,
) {
    let left = columns.saturating_sub(1 + width(text));
    if palette == Palette::Plain {
        let has_end = is_last && left > 0;
        line.push('│');
        line.push_str(text);
        line.extend(std::iter::repeat_n('─', left - usize::from(has_end)));
        line.push_str(if has_end { "│" } else { "" });
        return;
    }
    line.push_str(&paint.background(palette));
    line.push_str(GREY);
    line.push('▏');
    line.push_str(BLACK);
    line.push_str(text);
    line.extend(std::iter::repeat_n(' ', left));
    line.push_str(RESET);
}

/// Draws the mark for boxes that are too narrow.
pub(crate) fn put_small(line: &mut String, columns: usize, palette: Palette) {
    let marks: String = std::iter::repeat_n('⋯', columns).collect();
    if palette == Palette::Plain {
        Style::Plain.put(line, &marks, false);
        return;
    }
    line.push_str(&SMALL.background(palette));
    line.push_str(GREY);
    line.push_str(&marks);
    line.push_str(RESET);
}
