//! The stacks of allocations, as a tree of frames.

use stackweave_profile::{Frame, WordMap};
use stackweave_recording::ProcessRecording;

use crate::formats::report::blocks::Columns;
use crate::formats::report::frames::RecordedFrames;
use crate::formats::report::head::Threads;

/// A tree of frames. Each node comes after its parent, and the first is the root.
#[derive(Debug)]
pub(super) struct StackTree {
    /// Parent and frame.
    nodes: Vec<(u32, u32)>,
    children: WordMap<u64, u32>,
    /// By process and stack.
    stacks: WordMap<u64, u32>,
    /// Stacks with their frames, while a node is looked up.
    path: Vec<(u32, u32)>,
}

impl StackTree {
    pub(super) fn new() -> Self {
        let (children, stacks, path) = Default::default();
        Self { nodes: vec![(0, 0)], children, stacks, path }
    }

    /// Returns the node of a stack, below those of its callers; the root for the empty stack.
    pub(super) fn node(
        &mut self,
        (process_index, stack): (u32, u32),
        process: &ProcessRecording,
        frames: &mut RecordedFrames<'_>,
        threads: &Threads<'_>,
    ) -> u32 {
        let mut path = core::mem::take(&mut self.path);
        let mut next = stack;
        let mut node = loop {
            if let Some(known) = self.stacks.get(&key(process_index, next)) {
                break *known;
            }
            let Some((callers, frame)) = process.dictionary().stack(next) else { break 0 };
            path.push((next, frame));
            next = callers;
        };
        for (stack, frame) in path.drain(..).rev() {
            if threads.processes[process_index as usize].chain(frame).any(Frame::is_boundary) {
                node = 0;
            } else {
                for frame in frames.chain(threads, process_index as usize, frame) {
                    node = self.child(node, *frame);
                }
            }
            self.stacks.insert(key(process_index, stack), node);
        }
        self.path = path;
        node
    }

    #[expect(clippy::cast_possible_truncation, reason = "as many nodes do not fit into memory")]
    fn child(&mut self, parent: u32, frame: u32) -> u32 {
        *self.children.entry(key(parent, frame)).or_insert_with(|| {
            self.nodes.push((parent, frame));
            (self.nodes.len() - 1) as u32
        })
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns columns of the distance of each node from its parent, and of its frame.
    pub(super) fn columns(&self) -> Columns {
        let mut columns = Columns::default();
        columns.plain(self.nodes.iter().enumerate().map(|(node, (parent, _))| node as u64 - u64::from(*parent)));
        columns.plain(self.nodes.iter().map(|(_, frame)| (*frame).into()));
        columns
    }
}

fn key(first: u32, second: u32) -> u64 {
    u64::from(first) << 32 | u64::from(second)
}
