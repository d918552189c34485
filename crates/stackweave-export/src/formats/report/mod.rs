//! The report: one page that needs nothing else, made of what `report/` builds (`page.html`) and of the recording's data.
//!
//! No byte of a recording stands in the page but as base64, in elements that no browser runs. What the data says is
//! written down in `report/src/shared/format.ts`.

mod blocks;
mod head;
mod names;
mod timeline;
mod trees;

use std::io::Write;

use serde_json::Value;

use crate::error::ExportError;
use crate::source::Source;

use blocks::Blocks;
use head::Threads;
use names::Names;

/// The page without data, and where the data goes.
const PAGE: &str = include_str!("page.html");
const DATA: &str = "<!--DATA-->\n";

pub(super) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let (before, behind) = PAGE.split_once(DATA).unwrap_or((PAGE, ""));
    out.write_all(before.as_bytes())?;
    let mut blocks = Blocks::new(out);
    let mut names = Names::default();
    let threads = Threads::of(source);
    let trees = trees::write(source, &threads, &mut names, &mut blocks)?;
    let timeline = timeline::write(source, &threads, &mut names, &mut blocks)?;
    let mut head = head::head(source, &threads);
    head.insert("trees".to_owned(), trees);
    head.insert("timeline".to_owned(), timeline);
    head.insert("memory".to_owned(), Value::Null);
    head.insert("sources".to_owned(), Value::Array(Vec::new()));
    head.insert("runs".to_owned(), Value::Null);
    head.insert("before".to_owned(), Value::Null);
    names.write(&mut head, &mut blocks)?;
    blocks.head(&Value::Object(head))?;
    out.write_all(behind.as_bytes())?;
    Ok(())
}
