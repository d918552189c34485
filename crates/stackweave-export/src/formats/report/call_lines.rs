//! What the lines of functions cost by the calls that are made from them, thread by thread.
//!
//! The trees of calls have no lines, as a tree with a node for each line that something is called from would be many
//! times as large. Here are sums only: memory grows with the number of different pairs of a line and what it calls.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use serde_json::{Value, json};
use stackweave_profile::WordMap;

use super::blocks::{Blocks, Columns};
use super::frames::RecordedFrames;
use super::head::Threads;
use crate::activity::{Happening, Span, What};

/// The sums of the thread that is read now, and what the head tells of those before it.
#[derive(Debug, Default)]
pub(super) struct CallLines {
    thread: ThreadLines,
    told: Vec<Value>,
}

#[derive(Debug, Default)]
struct ThreadLines {
    pairs: Vec<Pair>,
    /// How many calls from each line are open.
    lines: Vec<u32>,
    /// The pairs of what is open, by how many are around it; `None` where the line is not known.
    open: Vec<Option<usize>>,
    /// The pair of a caller and what it calls, as the recording numbers them.
    recorded: WordMap<u64, Option<usize>>,
    /// The same by their places in the report: there a line is one frame, wherever in it calls are made.
    places: HashMap<(u32, usize), usize>,
    /// The places in `lines` by file and line: a line may be of several functions, one inside the other.
    of_files: HashMap<(Arc<str>, u32), usize>,
}

/// A line, and a function that is called from it.
#[derive(Debug)]
struct Pair {
    /// The place in the report of the caller's frame.
    frame: u32,
    /// The place in the report of the function that is called.
    called: usize,
    /// The place of its line among those of the thread.
    line: usize,
    calls: u64,
    /// A call inside another one of this pair is not counted again.
    total: u64,
    /// What of it no other call from the line has counted.
    of_line: u64,
    open: u32,
}

impl CallLines {
    /// Something happened on the thread that is read now.
    pub(super) fn take(&mut self, told: &Happening<'_>, threads: &Threads<'_>, frames: &mut RecordedFrames<'_>) {
        let depth = told.around.len();
        match &told.what {
            What::Begin(span) => {
                let pair = self.thread.pair(told.process, span, threads, frames);
                self.thread.begin(depth, pair);
            }
            What::End(span, _) => self.thread.end(depth, span, told.time),
            _ => {}
        }
    }

    /// Writes the sums of the thread, which has this place in the report. The next thread may be read then.
    pub(super) fn finish_thread(&mut self, place: usize, blocks: &mut Blocks<'_>) -> io::Result<()> {
        let mut pairs = core::mem::take(&mut self.thread).pairs;
        pairs.sort_unstable_by_key(|pair| (pair.frame, pair.called));
        if pairs.is_empty() {
            return Ok(());
        }
        let mut columns = Columns::default();
        columns.plain(pairs.iter().map(|pair| pair.frame.into()));
        columns.plain(pairs.iter().map(|pair| pair.called as u64));
        columns.plain(pairs.iter().map(|pair| pair.calls));
        columns.plain(pairs.iter().map(|pair| pair.total));
        columns.plain(pairs.iter().map(|pair| pair.of_line));
        let block = blocks.columns(&columns)?;
        self.told.push(json!({"thread": place, "rows": pairs.len(), "block": block}));
        Ok(())
    }

    /// What the head tells of all threads.
    pub(super) fn into_told(self) -> Value {
        Value::Array(self.told)
    }
}

impl ThreadLines {
    fn begin(&mut self, depth: usize, place: Option<usize>) {
        self.close_beyond(depth);
        self.open.resize(depth, None);
        self.open.push(place);
        if let Some(place) = place {
            let pair = &mut self.pairs[place];
            pair.open += 1;
            self.lines[pair.line] += 1;
        }
    }

    fn end(&mut self, depth: usize, span: &Span, time: u64) {
        self.close_beyond(depth + 1);
        let Some(place) = self.open.get(depth).copied().flatten() else { return };
        self.close_beyond(depth);
        let pair = &mut self.pairs[place];
        let duration = time.saturating_sub(span.began);
        pair.calls += u64::from(span.is_call);
        pair.total = pair.total.saturating_add(if pair.open == 0 { duration } else { 0 });
        pair.of_line = pair.of_line.saturating_add(if self.lines[pair.line] == 0 { duration } else { 0 });
    }

    /// Nothing is open beyond this depth.
    fn close_beyond(&mut self, depth: usize) {
        while self.open.len() > depth {
            if let Some(place) = self.open.pop().flatten() {
                let pair = &mut self.pairs[place];
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
        let Self { pairs, lines, places, of_files, .. } = self;
        let place = places.entry((frame, called)).or_insert_with(|| {
            let line = *of_files.entry((Arc::clone(file), line)).or_insert_with(|| {
                lines.push(0);
                lines.len() - 1
            });
            pairs.push(Pair { frame, called, line, calls: 0, total: 0, of_line: 0, open: 0 });
            pairs.len() - 1
        });
        Some(*place)
    }
}
