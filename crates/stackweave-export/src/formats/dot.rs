//! A call graph in the DOT language of graphviz.

use std::io::Write;

use crate::call_graph::{CallGraph, GraphNode};
use crate::error::ExportError;
use crate::source::Source;
use crate::svg::{percentage, subject, thousands};

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let graph = CallGraph::of(&source.profile()?);
    let title = format!("{} of {}", graph.measure.describe(), subject(source));
    let notes = graph.notes();
    writeln!(out, "digraph {} {{", quoted(&[&title]))?;
    writeln!(out, "\tgraph [label={}, labelloc=t, fontname=monospace, ranksep=0.3, nodesep=0.15];", {
        quoted(&[title.as_str()].into_iter().chain(notes.iter().map(String::as_str)).collect::<Vec<_>>())
    })?;
    writeln!(
        out,
        "\tnode [shape=box, style=\"filled,rounded\", fontname=monospace, fontsize=10, color=\"#00000066\"];"
    )?;
    writeln!(out, "\tedge [fontname=monospace, fontsize=9];")?;
    for (id, node) in graph.nodes.iter().enumerate() {
        let share = graph.share(node.statistics.total);
        writeln!(out, "\tn{id} [label={}, fillcolor=\"{}\"];", label(&graph, node), colour(share))?;
    }
    for edge in &graph.edges {
        let share = graph.share(edge.statistics.total);
        let calls = format!("{}×", thousands(edge.statistics.calls));
        let label = quoted(&[&percentage(share), &calls]);
        let width = 1.0 + share.clamp(0.0, 1.0) * 4.0;
        writeln!(out, "\tn{} -> n{} [label={label}, penwidth={width:.2}];", edge.from, edge.to)?;
    }
    Ok(writeln!(out, "}}")?)
}

fn label(graph: &CallGraph, node: &GraphNode) -> String {
    let of = node.statistics;
    let costs = format!("total {} self {}", percentage(graph.share(of.total)), percentage(graph.share(of.self_cost)));
    let calls = super::callgraph::calls(graph.measure, of);
    let lines = [node.label.name.as_str(), &node.label.location, &costs, &calls];
    quoted(&lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>())
}

/// Quotes lines as a DOT string. In labels, backslashes start escapes and ampersands start HTML entities.
fn quoted(lines: &[&str]) -> String {
    let escape = |line: &&str| line.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;");
    let escaped: Vec<String> = lines.iter().map(escape).collect();
    format!("\"{}\"", escaped.join("\\n"))
}

/// Returns a colour from pale yellow to red, as hue, saturation and value.
fn colour(share: f64) -> String {
    let share = share.clamp(0.0, 1.0);
    format!("{:.3} {:.3} 1.000", 0.14 * (1.0 - share), 0.08 + 0.62 * share.sqrt())
}
