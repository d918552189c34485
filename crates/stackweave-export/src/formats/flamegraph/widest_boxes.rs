//! Selects the boxes that are written: the widest, up to a maximum file size.

use std::fmt::Write;

use super::draw::{ROW, TEXT_SIZE, TOP};
use super::{BoxLabel, PictureBox};
use crate::svg::{CHARACTER, Escaped, fit};

/// The maximum size of all boxes.
const MAX_BYTES: usize = 4 << 20;

/// The width that the texts are cut for. The script cuts them again for the real width.
const WIDTH: f64 = 1200.0;

/// Returns the written boxes, in their order, and how many were left out.
pub(super) fn write_widest(boxes: &[PictureBox], label: &dyn Fn(&PictureBox) -> BoxLabel) -> (Vec<String>, u64) {
    let mut widest: Vec<usize> = (0..boxes.len()).collect();
    widest.sort_by(|a, b| boxes[*b].width.total_cmp(&boxes[*a].width).then(a.cmp(b)));
    let mut written: Vec<(usize, String)> = Vec::new();
    let mut bytes = 0;
    for index in widest {
        let text = markup(&boxes[index], &label(&boxes[index]));
        bytes += text.len();
        if bytes > MAX_BYTES {
            break;
        }
        written.push((index, text));
    }
    let left_out = boxes.len() - written.len();
    written.sort_unstable_by_key(|(index, _)| *index);
    (written.into_iter().map(|(_, text)| text).collect(), left_out as u64)
}

fn markup(of: &PictureBox, label: &BoxLabel) -> String {
    let (x, width) = (percent(of.left), percent(of.width));
    let y = TOP + ROW * of.row;
    let mut text = String::from(if of.is_first { r#"<g class="first">"# } else { "<g>" });
    let title = [&label.function.name, &label.function.location, &label.costs];
    let title = title.into_iter().filter(|line| !line.is_empty()).map(String::as_str).collect::<Vec<_>>().join("\n");
    let class = &label.class;
    let height = ROW - 1;
    let rect = format!(r#"<rect class="{class}" x="{x}%" y="{y}" width="{width}%" height="{height}"/>"#);
    let done = write!(text, "<title>{}</title>{rect}", Escaped(&title));
    debug_assert!(done.is_ok(), "writing to a string can't fail");
    let room = of.width * WIDTH - 6.0;
    if room >= TEXT_SIZE * CHARACTER * 3.0 {
        let name = fit(&label.function.name, room, TEXT_SIZE);
        let done = write!(text, r#"<text x="{x}%" dx="3" y="{}">{}</text>"#, y + 13, Escaped(&name));
        debug_assert!(done.is_ok(), "writing to a string can't fail");
    }
    text.push_str("</g>");
    text
}

/// Formats a share as a percentage, with enough digits for a zoomed picture.
fn percent(share: f64) -> String {
    let text = format!("{:.5}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::FunctionLabel;

    fn label(of: &PictureBox) -> BoxLabel {
        let function = FunctionLabel { name: format!("a name {}", of.item), location: "file.py:1".repeat(20) };
        BoxLabel { function, costs: "1.00 ms, 1.0%".to_owned(), class: "p1".to_owned() }
    }

    #[test]
    fn the_widest_boxes_are_kept_and_the_others_are_counted() {
        let boxes: Vec<PictureBox> = (0..100_000_u32)
            .map(|item| PictureBox { left: 0.0, width: f64::from(item % 1000) / 1e4, row: item, item, is_first: false })
            .collect();
        let (written, left_out) = write_widest(&boxes, &label);
        assert_eq!(written.len() as u64 + left_out, 100_000);
        assert!(left_out > 50_000 && written.iter().map(String::len).sum::<usize>() <= MAX_BYTES);
        assert!(written.iter().all(|text| !text.contains("a name 1001<")), "a narrow one");
        assert!(written.iter().any(|text| text.contains("<title>a name 999&#10;")), "a wide one");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([percent(0.0), percent(1.0), percent(1.0 / 3.0)], ["0", "100", "33.33333"]);
    }
}
