//! Draws a call graph that is laid out.

use std::fmt::{self, Write};

use super::{LABEL_LINE, LINE, NAME_SIZE, PADDING, SMALL_SIZE, calls};
use crate::call_graph::{CallGraph, GraphEdge, GraphNode};
use crate::layout::{GraphLayout, Rect, Route};
use crate::svg::{Escaped, FONT, cost, fit, percentage, plural, text_width};

pub(super) struct CallGraphPicture<'a> {
    pub(super) title: String,
    pub(super) graph: &'a CallGraph,
    /// The lines in each box.
    pub(super) texts: Vec<Vec<String>>,
    /// The lines beside each arrow.
    pub(super) labels: Vec<[String; 2]>,
    pub(super) layout: GraphLayout,
}

const MARGIN: f64 = 20.0;
/// The height of the head with two lines below the title, that of each other line, and the size of their text.
const HEAD: f64 = 72.0;
const NOTE: f64 = 16.0;
const NOTE_SIZE: f64 = 11.0;
const MIN_WIDTH: f64 = 420.0;

/// The number of colours for shares from 0 to 1.
const HEATS: u32 = 10;

const STYLE: &str = include_str!("callgraph.css");
const SCRIPT: &str = include_str!("callgraph.js");

impl CallGraphPicture<'_> {
    pub(super) fn svg(&self) -> String {
        let mut out = String::with_capacity(1 << 16);
        let done = self.write(&mut out);
        debug_assert!(done.is_ok(), "writing to a string can't fail");
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let lines = self.head_lines();
        let head = HEAD + NOTE * float(lines.len().saturating_sub(2));
        let widest = lines.iter().map(|line| text_width(line, NOTE_SIZE)).fold(self.layout.size.width, f64::max);
        let width = (widest + MARGIN * 2.0).max(MIN_WIDTH);
        let height = self.layout.size.height + head + MARGIN * 2.0;
        let title = format!("Call graph: {} of {}", self.graph.measure.describe(), self.title);
        writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
        write!(out, r#"<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="100%" "#)?;
        write!(out, r#"viewBox="0 0 {width:.0} {height:.0}" preserveAspectRatio="xMidYMin meet" "#)?;
        writeln!(out, r#"role="group" aria-label="{}" font-family="{FONT}">"#, Escaped(&title))?;
        writeln!(out, "<title>{}</title>", Escaped(&title))?;
        writeln!(out, "<style>\n{STYLE}{}</style>", heats()?)?;
        out.push_str(ARROWS);
        writeln!(out, r#"<rect class="page" width="100%" height="100%"/>"#)?;
        writeln!(out, r#"<g id="world" data-width="{width:.0}" data-height="{height:.0}">"#)?;
        write_head(out, (&title, &lines), (width - MARGIN * 2.0, head))?;
        let left = (width - self.layout.size.width) / 2.0;
        writeln!(out, r#"<g transform="translate({left:.1} {:.1})">"#, head + MARGIN)?;
        for (edge, route) in self.graph.edges.iter().zip(&self.layout.routes) {
            self.write_arrow(out, edge, route)?;
        }
        for ((edge, route), label) in self.graph.edges.iter().zip(&self.layout.routes).zip(&self.labels) {
            write_label(out, edge, &route.label, label)?;
        }
        for (id, node) in self.graph.nodes.iter().enumerate() {
            self.write_box(out, id, node)?;
        }
        writeln!(out, "</g>\n</g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>")
    }

    /// Returns the lines below the title.
    fn head_lines(&self) -> Vec<String> {
        let graph = self.graph;
        let functions = plural(graph.nodes.len() as u64, "function");
        let all = cost(graph.measure, graph.total);
        [vec![format!("{all} in total; {functions}")], graph.notes()].concat()
    }

    fn write_box(&self, out: &mut String, id: usize, node: &GraphNode) -> fmt::Result {
        let (rect, of) = (&self.layout.boxes[id], node.statistics);
        let graph = self.graph;
        let (share, self_cost) = (graph.share(of.total), graph.share(of.self_cost));
        let costs = [of.total, of.self_cost].map(|part| cost(graph.measure, part));
        let calls = calls(graph.measure, of);
        let about = format!(
            "{}\ntotal {} ({}), self {} ({}), {calls}",
            node.label.full(),
            costs[0],
            percentage(share),
            costs[1],
            percentage(self_cost)
        );
        let about = Escaped(&about);
        write!(out, r#"<g class="box" tabindex="0" role="img" aria-label="{about}" data-id="{id}" "#)?;
        write!(out, r#"data-kind="{}" "#, node.kind)?;
        write!(out, r#"data-calls="{}" data-primitive="{}" "#, of.calls, of.primitive_calls)?;
        write!(out, r#"data-self="{}" data-total="{}"><title>{about}</title>"#, of.self_cost, of.total)?;
        write_rect(out, &format!("h{}", heat(share)), rect, 4)?;
        for (index, line) in (0_u32..).zip(&self.texts[id]) {
            let y = rect.y + PADDING / 2.0 + LINE * f64::from(index + 1) - 2.0;
            let (class, size) = if index == 0 { ("name", NAME_SIZE) } else { ("small", SMALL_SIZE) };
            let x = rect.centre_x();
            write!(out, r#"<text class="{class}" font-size="{size}" x="{x:.1}" y="{y:.1}">{}</text>"#, Escaped(line))?;
        }
        writeln!(out, "</g>")
    }

    fn write_arrow(&self, out: &mut String, edge: &GraphEdge, route: &Route) -> fmt::Result {
        let share = self.graph.share(edge.statistics.total).clamp(0.0, 1.0);
        let back = if route.is_back { " back" } else { "" };
        let name = |id: usize| &self.graph.nodes[id].label.name;
        let all = cost(self.graph.measure, edge.statistics.total);
        let calls = calls(self.graph.measure, edge.statistics);
        let about = format!("{} → {}\n{all} ({}), {calls}", name(edge.from), name(edge.to), percentage(share));
        write!(out, r#"<g class="arrow{back}" data-from="{}" data-to="{}"><title>"#, edge.from, edge.to)?;
        write!(out, "{}</title>", Escaped(&about))?;
        let (heat, width) = (heat(share), 1.0 + share * 5.0);
        writeln!(
            out,
            r#"<path class="line a{heat}" stroke-width="{width:.1}" marker-end="url(#tip{})" d="{}"/></g>"#,
            u8::from(share > 0.25) + u8::from(share > 0.05),
            route.path
        )
    }
}

fn write_head(out: &mut String, (title, lines): (&str, &[String]), (room, height): (f64, f64)) -> fmt::Result {
    writeln!(out, r#"<g id="head" data-height="{height}"><rect class="page" width="100%" height="{height}"/>"#)?;
    writeln!(out, r#"<text class="title" x="{MARGIN}" y="30">{}</text>"#, Escaped(&fit(title, room, 16.0)))?;
    for (index, line) in lines.iter().enumerate() {
        let (y, line) = (48.0 + NOTE * float(index), fit(line, room, NOTE_SIZE));
        writeln!(out, r#"<text class="note" x="{MARGIN}" y="{y}">{}</text>"#, Escaped(&line))?;
    }
    writeln!(out, "</g>")
}

#[expect(clippy::cast_precision_loss, reason = "a few lines")]
fn float(lines: usize) -> f64 {
    lines as f64
}

/// The heads of arrows, by the width of their lines.
const ARROWS: &str = r#"<defs>
<marker id="tip0" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto"><path class="tip" d="M0 0L9 4L0 8z"/></marker>
<marker id="tip1" markerUnits="userSpaceOnUse" markerWidth="12" markerHeight="11" refX="10" refY="5.5" orient="auto"><path class="tip" d="M0 0L12 5.5L0 11z"/></marker>
<marker id="tip2" markerUnits="userSpaceOnUse" markerWidth="16" markerHeight="16" refX="13" refY="8" orient="auto"><path class="tip" d="M0 0L16 8L0 16z"/></marker>
</defs>
"#;

fn write_rect(out: &mut String, class: &str, rect: &Rect, radius: u8) -> fmt::Result {
    write!(
        out,
        r#"<rect class="{class}" x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" rx="{radius}"/>"#,
        rect.x, rect.y, rect.size.width, rect.size.height
    )
}

fn write_label(out: &mut String, edge: &GraphEdge, rect: &Rect, lines: &[String; 2]) -> fmt::Result {
    write!(out, r#"<g class="label" data-from="{}" data-to="{}">"#, edge.from, edge.to)?;
    write_rect(out, "back", rect, 3)?;
    for (index, line) in (1_u8..).zip(lines) {
        let (x, y) = (rect.centre_x(), rect.y + LABEL_LINE * f64::from(index) - 1.5);
        write!(out, r#"<text class="small" font-size="{SMALL_SIZE}" x="{x:.1}" y="{y:.1}">{}</text>"#, Escaped(line))?;
    }
    writeln!(out, "</g>")
}

/// Returns the colour of a share. Small shares are distinguished better than great ones.
fn heat(share: f64) -> u32 {
    (0..HEATS - 1).rev().find(|heat| share.sqrt() >= f64::from(*heat + 1) / f64::from(HEATS)).map_or(0, |heat| heat + 1)
}

/// Writes the colours of shares, for light and dark pages: from pale to red.
fn heats() -> Result<String, fmt::Error> {
    let mut rules = String::new();
    for is_dark in [false, true] {
        rules.push_str(if is_dark { "@media(prefers-color-scheme:dark){" } else { "" });
        for heat in 0..HEATS {
            let hue = 50 - 50 * heat / (HEATS - 1);
            let (saturation, light, line) = if is_dark {
                (20 + heat * 4, 20 + heat * 2, 50 + heat)
            } else {
                (60 + heat * 3, 95 - heat * 3, 55 - heat)
            };
            write!(rules, ".h{heat}{{fill:hsl({hue},{saturation}%,{light}%)}}")?;
            write!(rules, ".a{heat}{{stroke:hsl({hue},{}%,{line}%)}}", heat * 9)?;
        }
        rules.push_str(if is_dark { "}\n" } else { "\n" });
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_share_has_a_colour() {
        let rules = heats().unwrap();
        for share in [-1.0, 0.0, 0.001, 0.3, 1.0, 2.0, f64::NAN] {
            assert_eq!(rules.matches(&format!(".h{}{{", heat(share))).count(), 2, "{share}");
        }
        assert_eq!([heat(0.0), heat(0.01), heat(0.26), heat(1.0)], [0, 1, 5, 9]);
    }

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
