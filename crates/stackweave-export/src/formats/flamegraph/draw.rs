//! Draws the picture around the boxes.

use std::fmt::{self, Write as _};
use std::io::Write;

use super::differential::LEVELS;
use super::widest_boxes::write_widest;
use super::{BoxLabel, Flames, PictureBox};
use crate::error::ExportError;
use crate::svg::{CHARACTER, Escaped, FONT, fit, thousands, write_shades};

/// The position of the first row of boxes, the height of a row, and the size of its text, in pixels.
pub(super) const TOP: u32 = 104;
pub(super) const ROW: u32 = 18;
pub(super) const TEXT_SIZE: f64 = 12.0;

const NOTE: u32 = 17;

const STYLE: &str = include_str!("flamegraph.css");
const SCRIPT: &str = include_str!("flamegraph.js");

pub(super) fn write_flames(
    flames: &Flames,
    label: &dyn Fn(&PictureBox) -> BoxLabel,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let (boxes, left_out) = write_widest(&flames.boxes, label);
    let mut head = String::new();
    let mut tail = String::new();
    let rows = flames.boxes.iter().map(|of| of.row + 1).max().unwrap_or(1);
    let done = write_head(&mut head, flames, rows).and_then(|()| write_tail(&mut tail, flames, rows, left_out));
    debug_assert!(done.is_ok(), "writing to a string can't fail");
    out.write_all(head.as_bytes())?;
    for text in boxes {
        writeln!(out, "{text}")?;
    }
    Ok(out.write_all(tail.as_bytes())?)
}

fn write_head(out: &mut String, flames: &Flames, rows: u32) -> fmt::Result {
    let height = TOP + rows * ROW + NOTE * note_count(flames) + 16;
    let title = Escaped(&flames.title);
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    write!(out, r#"<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{height}" role="group" "#)?;
    writeln!(out, r#"aria-label="{title}" font-family="{FONT}" font-size="{TEXT_SIZE}">"#)?;
    writeln!(out, "<title>{title}</title>\n<style>\n{STYLE}")?;
    write_shades(out)?;
    write_differences(out)?;
    writeln!(out, "</style>")?;
    writeln!(out, r#"<rect class="page" width="100%" height="100%"/>"#)?;
    writeln!(out, r#"<text id="title" class="title" x="10" y="24">{title}</text>"#)?;
    writeln!(out, r#"<text class="note" x="10" y="42">{}</text>"#, Escaped(&flames.subtitle))?;
    let mut x = 10.0;
    for entry in &flames.legend {
        let class = &entry.class;
        write!(out, r#"<rect class="{class}" x="{x:.0}" y="50" width="11" height="11"/>"#)?;
        writeln!(out, r#"<text class="note" x="{:.0}" y="60">{}</text>"#, x + 16.0, Escaped(&entry.text))?;
        x += 34.0 + entry.text.chars().map(|_| CHARACTER * 11.0).sum::<f64>();
    }
    writeln!(out, r#"<g id="boxes" data-top="{TOP}" data-row="{ROW}" data-rows="{rows}">"#)
}

fn note_count(flames: &Flames) -> u32 {
    u32::try_from(flames.notes.len()).unwrap_or(0) + 1
}

fn write_tail(out: &mut String, flames: &Flames, rows: u32, left_out: u64) -> fmt::Result {
    writeln!(out, "</g>")?;
    let (narrow, drawn) = (flames.narrow, flames.boxes.len() as u64 - left_out);
    writeln!(out, "<!-- boxes: {drawn}, too narrow: {narrow}, left out: {left_out} -->")?;
    let mut notes = flames.notes.clone();
    if narrow + left_out > 0 {
        notes.push(format!("{} boxes are too narrow to be seen and were left out", thousands(narrow + left_out)));
    }
    let mut y = TOP + rows * ROW + NOTE;
    for note in &notes {
        writeln!(
            out,
            r#"<text class="note" xml:space="preserve" x="10" y="{y}">{}</text>"#,
            Escaped(&fit(note, 1180.0, 11.0))
        )?;
        y += NOTE;
    }
    writeln!(out, "<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>")
}

/// Writes the shades of differences, for light and dark pages.
fn write_differences(out: &mut String) -> fmt::Result {
    for is_dark in [false, true] {
        out.push_str(if is_dark { "@media(prefers-color-scheme:dark){" } else { "" });
        for level in 1..=LEVELS {
            let (red, blue) = if is_dark { (20 + level * 5, 22 + level * 5) } else { (96 - level * 6, 96 - level * 5) };
            write!(out, ".more{level}{{fill:hsl(4,{}%,{red}%)}}", if is_dark { 30 + level * 8 } else { 85 })?;
            write!(out, ".less{level}{{fill:hsl(212,{}%,{blue}%)}}", if is_dark { 25 + level * 7 } else { 80 })?;
        }
        out.push_str(if is_dark { "}\n" } else { "\n" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_no_outside_references() {
        for banned in
            ["]]>", "innerHTML", "outerHTML", "insertAdjacent", "fetch(", "http:", "https:", "eval(", "import"]
        {
            let script = SCRIPT.replace("http://www.w3.org/", "");
            assert!(!script.contains(banned), "{banned}");
        }
    }
}
