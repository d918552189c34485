//! Which boxes are written: the widest, until the file is as great as it may be.

use std::fmt::Write;

use super::draw::{ROW, TEXT_SIZE, TOP};
use super::{About, FlameBox};
use crate::svg::{CHARACTER, Escaped, fit};

/// How many bytes all boxes may take.
const MOST_BYTES: usize = 4 << 20;

/// The width that the texts of a picture are made for. Its script makes them anew for the real one.
const WIDTH: f64 = 1200.0;

/// The boxes as they are written, in their order, and how many there was no room for.
pub(super) fn chosen(boxes: &[FlameBox], about: &dyn Fn(&FlameBox) -> About) -> (Vec<String>, u64) {
    let mut widest: Vec<usize> = (0..boxes.len()).collect();
    widest.sort_by(|a, b| boxes[*b].width.total_cmp(&boxes[*a].width).then(a.cmp(b)));
    let mut written: Vec<(usize, String)> = Vec::new();
    let mut bytes = 0;
    for index in widest {
        let text = markup(&boxes[index], &about(&boxes[index]));
        bytes += text.len();
        if bytes > MOST_BYTES {
            break;
        }
        written.push((index, text));
    }
    let left_out = boxes.len() - written.len();
    written.sort_unstable_by_key(|(index, _)| *index);
    (written.into_iter().map(|(_, text)| text).collect(), left_out as u64)
}

fn markup(of: &FlameBox, about: &About) -> String {
    let (x, width) = (percent(of.left), percent(of.width));
    let y = TOP + ROW * of.row;
    let mut text = String::from(if of.is_first { r#"<g class="first">"# } else { "<g>" });
    let title = [&about.named.name, &about.named.place, &about.costs];
    let title = title.into_iter().filter(|line| !line.is_empty()).map(String::as_str).collect::<Vec<_>>().join("\n");
    let class = &about.class;
    let height = ROW - 1;
    let rect = format!(r#"<rect class="{class}" x="{x}%" y="{y}" width="{width}%" height="{height}"/>"#);
    let done = write!(text, "<title>{}</title>{rect}", Escaped(&title));
    debug_assert!(done.is_ok(), "a string takes everything");
    let room = of.width * WIDTH - 6.0;
    if room >= TEXT_SIZE * CHARACTER * 3.0 {
        let name = fit(&about.named.name, room, TEXT_SIZE);
        let done = write!(text, r#"<text x="{x}%" dx="3" y="{}">{}</text>"#, y + 13, Escaped(&name));
        debug_assert!(done.is_ok(), "a string takes everything");
    }
    text.push_str("</g>");
    text
}

/// A share as a percentage with as many digits as a screen's pixels need when it is zoomed.
fn percent(share: f64) -> String {
    let text = format!("{:.5}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::Named;

    fn about(of: &FlameBox) -> About {
        let named = Named { name: format!("a name {}", of.item), place: "file.py:1".repeat(20) };
        About { named, costs: "1.00 ms, 1.0%".to_owned(), class: "p1".to_owned() }
    }

    #[test]
    fn the_widest_boxes_are_kept_and_the_rest_is_counted() {
        let boxes: Vec<FlameBox> = (0..100_000_u32)
            .map(|item| FlameBox { left: 0.0, width: f64::from(item % 1000) / 1e4, row: item, item, is_first: false })
            .collect();
        let (written, left_out) = chosen(&boxes, &about);
        assert_eq!(written.len() as u64 + left_out, 100_000);
        assert!(left_out > 50_000 && written.iter().map(String::len).sum::<usize>() <= MOST_BYTES);
        assert!(written.iter().all(|text| !text.contains("a name 1001<")), "a narrow one");
        assert!(written.iter().any(|text| text.contains("<title>a name 999&#10;")), "a wide one");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([percent(0.0), percent(1.0), percent(1.0 / 3.0)], ["0", "100", "33.33333"]);
    }
}
