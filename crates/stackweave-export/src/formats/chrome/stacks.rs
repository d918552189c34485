//! The stacks that events refer to, as the format's tree of frames.

use std::collections::BTreeSet;
use std::io::Write;

use stackweave_profile::Frame;

use crate::activity::NamedProcess;
use crate::error::ExportError;
use crate::formats::chrome::line::{EventLine, write_string};

/// The stacks of a process that its events refer to, with those of their callers.
#[derive(Debug, Default)]
pub(super) struct UsedStacks(BTreeSet<u32>);

impl UsedStacks {
    /// Refers to a stack, if there is one.
    pub(super) fn refer(&mut self, line: &mut EventLine, process: usize, stack: u32) {
        if stack != 0 {
            self.0.insert(stack);
            line.text("sf", &format!("{process}.{stack}"));
        }
    }

    /// Writes the frames of all stacks that events refer to.
    ///
    /// The innermost function of a stack has the number of the stack; functions that it was inlined into, or that it is
    /// generated from, have that number with an index.
    pub(super) fn write(
        &self,
        out: &mut dyn Write,
        (process_index, process): (usize, &NamedProcess<'_>),
        is_first: &mut bool,
    ) -> Result<(), ExportError> {
        let dictionary = process.recording.dictionary();
        let mut all = self.0.clone();
        for stack in &self.0 {
            let mut next = *stack;
            while let Some((callers, _)) = dictionary.stack(next).filter(|(callers, _)| *callers != 0) {
                if !all.insert(callers) {
                    break;
                }
                next = callers;
            }
        }
        let mut text = Vec::new();
        for stack in all {
            let (callers, frame) = dictionary.stack(stack).unwrap_or((0, 0));
            let chain: Vec<Option<&Frame>> = process.chain(frame).map(Some).collect();
            let chain = if chain.is_empty() { vec![None] } else { chain };
            let mut parent =
                (callers != 0 && dictionary.stack(callers).is_some()).then(|| format!("{process_index}.{callers}"));
            for (index, function) in chain.iter().enumerate() {
                let inner = chain.len() - 1 - index;
                let id = if inner == 0 {
                    format!("{process_index}.{stack}")
                } else {
                    format!("{process_index}.{stack}.{inner}")
                };
                text.extend_from_slice(if *is_first { b"\n" } else { b",\n" });
                *is_first = false;
                write_frame(&mut text, &id, parent.as_deref(), *function);
                parent = Some(id);
            }
            out.write_all(&text)?;
            text.clear();
        }
        Ok(())
    }
}

fn write_frame(out: &mut Vec<u8>, id: &str, parent: Option<&str>, function: Option<&Frame>) {
    let name = function.map_or_else(|| Frame::UNKNOWN.to_owned(), name_with_location);
    write_string(out, id);
    out.extend_from_slice(b":{\"name\":");
    write_string(out, &name);
    out.extend_from_slice(b",\"category\":");
    write_string(out, function.map_or("span", |function| function.kind.as_str()));
    if let Some(parent) = parent {
        out.extend_from_slice(b",\"parent\":");
        write_string(out, parent);
    }
    out.push(b'}');
}

/// Returns the function with its location: the format has a single text for both.
fn name_with_location(frame: &Frame) -> String {
    let name = frame.qualname.as_ref().unwrap_or(&frame.name);
    match (&frame.filename, frame.position.line) {
        (Some(file), Some(line)) => format!("{name} ({file}:{line})"),
        (Some(file), None) => format!("{name} ({file})"),
        (None, _) => match &frame.module {
            Some(module) => format!("{name} ({module})"),
            None => name.to_string(),
        },
    }
}
