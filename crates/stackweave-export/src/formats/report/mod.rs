//! The report: one self-contained page, built by `report/` (`page.html`), with the data of the recording.
//!
//! All bytes of a recording are base64 in the page, in elements that no browser runs. The encoding of the data is
//! documented in `report/src/shared/format.ts`.

mod blocks;
mod call_lines;
mod costs;
mod events_pass;
mod folded_tree;
mod frames;
mod head;
mod memory;
mod names;
mod report_mark;
mod runs;
mod source_files;
mod sources;
mod timeline;
mod title;
mod trees;

use std::io::Write;

use serde_json::Value;

use crate::error::ExportError;
use crate::source::Source;

use blocks::PageBlocks;
use events_pass::EventsPass;
use head::Threads;
use names::Names;

pub use report_mark::is_report;

/// The page without data, and the mark that the data replaces.
const PAGE: &str = include_str!("page.html");
const DATA: &str = "<!--DATA-->\n";

pub(super) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let (before, after) = PAGE.split_once(DATA).unwrap_or((PAGE, ""));
    out.write_all(before.as_bytes())?;
    write_data(source, &mut PageBlocks::new(out))?;
    out.write_all(after.as_bytes())?;
    Ok(())
}

fn write_data(source: &Source<'_>, blocks: &mut PageBlocks<'_>) -> Result<(), ExportError> {
    let mut names = Names::new(&source.options().texts);
    let threads = Threads::of(source);
    let EventsPass { mut costs, timeline, notes, timing, failures } =
        events_pass::read(source, &threads, &mut names, blocks)?;
    let trees = trees::write(source, &costs, &threads, &mut names, blocks)?;
    costs.free_stacks();
    let mut memory = Value::Null;
    if trees.has_memory {
        memory = memory::write(source, (&costs, &failures), &threads, &mut names, blocks)?;
    }
    let runs = runs::write(timing.as_ref(), &threads, &mut names, blocks)?;
    let sources = sources::write(source, &mut names, &trees.costs, blocks)?;
    let mut remarks = head::remarks(source, &trees, &notes, &costs.hooks());
    remarks.extend(runs.problems);
    remarks.extend(source.sources().left_out_text());

    let mut head = head::head(source, &threads);
    let mut put = |part: &str, value: Value| head.insert(part.to_owned(), value);
    put("trees", Value::Array(trees.entries));
    put("timeline", timeline.timeline);
    put("callLines", Value::Array(timeline.call_lines));
    put("memory", memory);
    put("runs", runs.block);
    put("sources", sources);
    put("remarks", remarks.into());
    names.write(&mut head, blocks)?;
    Ok(blocks.head(&Value::Object(head))?)
}
