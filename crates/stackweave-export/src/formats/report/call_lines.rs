//! The costs of lines by the calls that they make, for each thread.
//!
//! The trees of calls have no lines: a tree with a node for each line of a call would be many times as large. These are
//! sums only: memory grows with the number of different pairs of line and callee.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use serde_json::{Value, json};
use stackweave_profile::WordMap;

use super::blocks::{Columns, PageBlocks};
use super::frames::RecordedFrames;
use super::head::Threads;
use crate::activity::{EventContent, Span, ThreadEvent};

/// The sums of a thread.
#[derive(Debug, Default)]
pub(super) struct CallLines {
    pairs: Vec<LineCallee>,
    /// The number of calls of each line that are open.
    lines: Vec<u32>,
    /// The pairs of open calls, by depth; `None` if the line is unknown.
    open: Vec<Option<usize>>,
    /// The pair of a caller and a callee, by their numbers in the recording.
    recorded: WordMap<u64, Option<usize>>,
    /// The same by their indexes in the report, where all calls of a line have one frame.
    by_index: HashMap<(u32, usize), usize>,
    /// The indexes in `lines` by file and line: a line may belong to several functions, one inside the other.
    of_files: HashMap<(Arc<str>, u32), usize>,
}

/// A line, with a function that it calls.
#[derive(Debug)]
struct LineCallee {
    /// The index of the caller's frame in the report.
    frame: u32,
    /// The index of the callee in the report.
    called: usize,
    /// The index of the line in the thread's lines.
    line: usize,
    calls: u64,
    /// The total time; a call inside another one of this pair is not counted again.
    total: u64,
    /// The time that no other call from the line has counted.
    of_line: u64,
    open: u32,
}

impl CallLines {
    /// Adds an event of the thread.
    pub(super) fn add(&mut self, event: &ThreadEvent<'_>, threads: &Threads<'_>, frames: &mut RecordedFrames<'_>) {
        let depth = event.around.len();
        match &event.content {
            EventContent::Begin(span) => {
                let pair = self.pair(event.process, span, threads, frames);
                self.begin(depth, pair);
            }
            EventContent::End(span, _) => self.end(depth, span, event.time),
            _ => {}
        }
    }

    /// Writes the sums of the thread, which has this index in the report. Returns their head entry, if there are any.
    pub(super) fn finish(self, thread: usize, blocks: &mut PageBlocks<'_>) -> io::Result<Option<Value>> {
        let mut pairs = self.pairs;
        pairs.sort_unstable_by_key(|pair| (pair.frame, pair.called));
        if pairs.is_empty() {
            return Ok(None);
        }
        let mut columns = Columns::default();
        columns.plain(pairs.iter().map(|pair| pair.frame.into()));
        columns.plain(pairs.iter().map(|pair| pair.called as u64));
        columns.plain(pairs.iter().map(|pair| pair.calls));
        columns.plain(pairs.iter().map(|pair| pair.total));
        columns.plain(pairs.iter().map(|pair| pair.of_line));
        let block = blocks.columns(&columns)?;
        Ok(Some(json!({"thread": thread, "rows": pairs.len(), "block": block})))
    }

    fn begin(&mut self, depth: usize, index: Option<usize>) {
        self.close_beyond(depth);
        self.open.resize(depth, None);
        self.open.push(index);
        if let Some(index) = index {
            let pair = &mut self.pairs[index];
            pair.open += 1;
            self.lines[pair.line] += 1;
        }
    }

    fn end(&mut self, depth: usize, span: &Span, time: u64) {
        self.close_beyond(depth + 1);
        let Some(index) = self.open.get(depth).copied().flatten() else { return };
        self.close_beyond(depth);
        let pair = &mut self.pairs[index];
        let duration = time.saturating_sub(span.began);
        pair.calls += u64::from(span.is_call);
        pair.total = pair.total.saturating_add(if pair.open == 0 { duration } else { 0 });
        pair.of_line = pair.of_line.saturating_add(if self.lines[pair.line] == 0 { duration } else { 0 });
    }

    /// Closes all calls beyond this depth.
    fn close_beyond(&mut self, depth: usize) {
        while self.open.len() > depth {
            if let Some(index) = self.open.pop().flatten() {
                let pair = &mut self.pairs[index];
                pair.open -= 1;
                self.lines[pair.line] -= 1;
            }
        }
    }

    fn pair(
        &mut self,
        process: usize,
        span: &Span,
        threads: &Threads<'_>,
        frames: &mut RecordedFrames<'_>,
    ) -> Option<usize> {
        if span.caller == 0 {
            return None;
        }
        let key = u64::from(span.caller) << 32 | u64::from(span.frame);
        if let Some(known) = self.recorded.get(&key) {
            return *known;
        }
        let [frame, called] = [span.caller, span.frame].map(|number| frames.innermost(threads, process, number));
        let pair = self.new_pair(frame, called, frames);
        self.recorded.insert(key, pair);
        pair
    }

    #[cold]
    fn new_pair(&mut self, frame: u32, called: u32, frames: &RecordedFrames<'_>) -> Option<usize> {
        let (called, _, _) = frames.names().frame_at(called)?;
        let (_, function, line) = frames.names().frame_at(frame)?;
        let file = function.filename.as_ref()?;
        let line = line.filter(|line| *line > 0)?;
        let Self { pairs, lines, by_index, of_files, .. } = self;
        let index = by_index.entry((frame, called)).or_insert_with(|| {
            let line = *of_files.entry((Arc::clone(file), line)).or_insert_with(|| {
                lines.push(0);
                lines.len() - 1
            });
            pairs.push(LineCallee { frame, called, line, calls: 0, total: 0, of_line: 0, open: 0 });
            pairs.len() - 1
        });
        Some(*index)
    }
}
