//! A call graph as a picture: boxes with the costs of functions, arrows with the costs of calls. The file needs nothing
//! else to be viewed.

mod draw;

use std::io::Write;

use stackweave_profile::{CallStatistics, Measure};

use crate::call_graph::{CallGraph, GraphEdge, GraphNode};
use crate::error::ExportError;
use crate::layout::{GraphLink, Size, lay_out};
use crate::source::Source;
use crate::svg::{cost, fit, percentage, subject, text_width, thousands};

const NAME_SIZE: f64 = 12.0;
const SMALL_SIZE: f64 = 10.5;
const LINE: f64 = 14.0;
const PADDING: f64 = 8.0;
const WIDEST_NAME: f64 = 230.0;
const LABEL_LINE: f64 = 12.0;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let graph = CallGraph::of(&source.profile()?);
    Ok(out.write_all(to_svg(&graph, subject(source)).as_bytes())?)
}

/// Draws a graph.
pub(crate) fn to_svg(graph: &CallGraph, title: String) -> String {
    let texts: Vec<Vec<String>> = graph.nodes.iter().map(|node| box_lines(graph, node)).collect();
    let labels: Vec<[String; 2]> = graph.edges.iter().map(|edge| edge_label(graph, edge)).collect();
    let sizes: Vec<Size> = texts.iter().map(|lines| box_size(lines)).collect();
    let links: Vec<GraphLink> = graph.edges.iter().zip(&labels).map(|(edge, label)| link(graph, edge, label)).collect();
    let layout = lay_out(&sizes, &links);
    draw::CallGraphPicture { title, graph, texts, labels, layout }.svg()
}

/// Formats a number of calls like `cProfile`: all calls, and primitive calls if they are fewer.
pub(super) fn calls(measure: Measure, of: CallStatistics) -> String {
    let all = thousands(of.calls);
    let count = if measure.counts_calls() && of.primitive_calls != of.calls {
        format!("{all}/{}", thousands(of.primitive_calls))
    } else {
        all
    };
    let word = if measure.counts_calls() && of.calls == 1 { "call" } else { measure.counted() };
    format!("{count} {word}")
}

fn box_lines(graph: &CallGraph, node: &GraphNode) -> Vec<String> {
    let of = node.statistics;
    let costs = format!("total {} · self {}", percentage(graph.share(of.total)), percentage(graph.share(of.self_cost)));
    let mut lines = vec![fit(&node.label.name, WIDEST_NAME, NAME_SIZE)];
    if !node.label.location.is_empty() {
        lines.push(fit(&node.label.location, WIDEST_NAME, SMALL_SIZE));
    }
    lines.extend([costs, format!("{} · {}", cost(graph.measure, of.total), calls(graph.measure, of))]);
    lines
}

#[expect(clippy::cast_precision_loss, reason = "a box has four lines")]
fn box_size(lines: &[String]) -> Size {
    let width = |(index, line): (usize, &String)| text_width(line, if index == 0 { NAME_SIZE } else { SMALL_SIZE });
    let widest = lines.iter().enumerate().map(width).fold(0.0, f64::max);
    Size { width: widest + PADDING * 2.0, height: lines.len() as f64 * LINE + PADDING * 1.25 }
}

fn edge_label(graph: &CallGraph, edge: &GraphEdge) -> [String; 2] {
    [percentage(graph.share(edge.statistics.total)), format!("{}×", thousands(edge.statistics.calls))]
}

fn link(graph: &CallGraph, edge: &GraphEdge, label: &[String; 2]) -> GraphLink {
    let width = label.iter().map(|line| text_width(line, SMALL_SIZE)).fold(0.0, f64::max);
    let weight = 0.1 + graph.share(edge.statistics.total).clamp(0.0, 1.0) * 8.0;
    let label = Size { width: width + 6.0, height: LABEL_LINE * 2.0 + 2.0 };
    GraphLink { from: edge.from, to: edge.to, weight, label }
}
