//! Who called whom: a tree for each thread and measure.

use serde_json::{Value, json};
use stackweave_profile::{FrameIndex, Grouping, PartProfile};

use super::blocks::{Blocks, Columns};
use super::head::Threads;
use super::names::Names;
use crate::error::ExportError;
use crate::source::Source;

/// Writes the trees: what the head tells of them.
pub(super) fn write(
    source: &Source<'_>,
    threads: &Threads<'_>,
    names: &mut Names,
    blocks: &mut Blocks<'_>,
) -> Result<Value, ExportError> {
    let mut told = Vec::new();
    for part in source.parts(Grouping::Threads)? {
        let frames = names.extend(part.profile.functions());
        let block = blocks.columns(&columns(&part, &frames))?;
        let thread = part.process.zip(part.thread).and_then(|(process, number)| threads.place(process, number));
        told.push(json!({
            "measure": part.profile.measure().as_str(),
            "device": -1,
            "thread": thread,
            "side": "after",
            "nodes": part.profile.tree().nodes().len(),
            "total": part.profile.total(),
            "folded": 0,
            "block": block,
        }));
    }
    Ok(Value::Array(told))
}

fn columns(part: &PartProfile, frames: &[FrameIndex]) -> Columns {
    let nodes = part.profile.tree().nodes();
    let mut columns = Columns::default();
    columns.plain(nodes.iter().enumerate().map(|(id, node)| (id - node.parent.index()) as u64));
    let place = |index: usize| frames.get(index).map_or(0, |frame| frame.index() as u64);
    columns.plain(nodes.iter().map(|node| place(node.frame.index())));
    columns.plain(nodes.iter().map(|node| node.cost.calls));
    columns.signed(nodes.iter().map(|node| node.cost.own));
    columns
}
