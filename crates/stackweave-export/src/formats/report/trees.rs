//! The call trees: one for each measure, device and thread.

use serde_json::{Value, json};
use stackweave_profile::{EveryMeasure, FrameIndex, Measure, MeasuredProfile};

use super::blocks::{Columns, PageBlocks};
use super::costs::FunctionCosts;
use super::folded_tree::{FoldedNode, folded};
use super::head::Threads;
use super::names::Names;
use crate::error::ExportError;
use crate::source::Source;

/// The maximum number of nodes of a tree in the page.
const MAX_NODES: usize = 400_000;

/// The result of writing the trees.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// The head entries of the trees.
    pub(super) entries: Vec<Value>,
    pub(super) costs: FunctionCosts,
    pub(super) has_memory: bool,
    /// Whether calls or samples were recorded.
    pub(super) has_time: bool,
}

/// Writes the trees of the recording, and of the one before a change.
pub(super) fn write(
    source: &Source<'_>,
    all: &EveryMeasure<'_>,
    threads: &Threads<'_>,
    names: &mut Names,
    blocks: &mut PageBlocks<'_>,
) -> Result<Trees, ExportError> {
    let mut trees = Trees::default();
    for process in 0..source.processes().len() {
        let thread = |number: Option<u32>| threads.index(process, number?);
        trees.add(source.visible_profiles(all, process), ("after", &thread), names, blocks)?;
    }
    if let Some((all, processes)) = source.every_measure_before()? {
        for process in 0..processes {
            trees.add(source.visible_profiles(&all, process), ("before", &|_| None), names, blocks)?;
        }
    }
    Ok(trees)
}

impl Trees {
    /// Writes the trees of a process, for one side of a comparison.
    fn add(
        &mut self,
        parts: impl Iterator<Item = MeasuredProfile>,
        (side, thread): (&str, &dyn Fn(Option<u32>) -> Option<usize>),
        names: &mut Names,
        blocks: &mut PageBlocks<'_>,
    ) -> Result<(), ExportError> {
        for part in parts {
            let functions = part.profile.functions();
            let frames = if side == "before" { names.extend_by_version(functions) } else { names.extend(functions) };
            let nodes = folded(&part.profile, MAX_NODES);
            self.has_memory |= part.profile.measure().is_memory();
            self.has_time |= matches!(part.profile.measure(), Measure::WallTime | Measure::Samples);
            self.costs.add(&part, names, &frames);
            self.entries.push(json!({
                "measure": part.profile.measure().as_str(),
                "device": part.device,
                "thread": thread(part.thread),
                "side": side,
                "nodes": nodes.len(),
                "total": part.profile.total(),
                "folded": part.profile.tree().nodes().len() - nodes.len(),
                "block": blocks.columns(&columns(&nodes, &frames))?,
            }));
        }
        Ok(())
    }
}

fn columns(nodes: &[FoldedNode], frames: &[FrameIndex]) -> Columns {
    let mut columns = Columns::default();
    columns.plain(nodes.iter().enumerate().map(|(index, node)| index as u64 - u64::from(node.parent)));
    let frame = |node: &FoldedNode| frames.get(node.frame as usize).map_or(0, |frame| frame.index() as u64);
    columns.plain(nodes.iter().map(frame));
    columns.plain(nodes.iter().map(|node| node.calls));
    columns.signed(nodes.iter().map(|node| node.self_cost));
    columns
}
