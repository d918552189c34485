//! The names of frames as JSON, each written once.

use std::collections::HashMap;
use std::rc::Rc;

use stackweave_profile::Frame;

use crate::activity::NamedProcess;
use crate::formats::chrome::line::write_string;

/// By the number of the frame: the functions that it stands for, outermost first.
#[derive(Debug, Default)]
pub(super) struct Names {
    functions: HashMap<u32, Rc<[Name]>>,
    /// Members of an object: from where the frame calls, if that is known.
    callers: HashMap<u32, Rc<[u8]>>,
}

/// What events of a function have in common.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: Box<[u8]>,
    pub(super) category: Box<[u8]>,
    /// Members of an object: where it is.
    pub(super) args: Box<[u8]>,
}

impl Names {
    pub(super) fn all(&mut self, process: &NamedProcess<'_>, frame: u32) -> Rc<[Name]> {
        let named = || match process.chain(frame).map(Name::of).collect::<Rc<[Name]>>() {
            none if none.is_empty() => Rc::new([Name::unknown()]),
            names => names,
        };
        Rc::clone(self.functions.entry(frame).or_insert_with(named))
    }

    /// What a call says about the frame that calls.
    pub(super) fn caller(&mut self, process: &NamedProcess<'_>, frame: u32) -> Rc<[u8]> {
        let said = || {
            let mut member = Vec::new();
            if let Some(line) = process.line_of(frame) {
                member.extend_from_slice(b"\"called from\":");
                write_string(&mut member, &line);
            }
            member.into()
        };
        Rc::clone(self.callers.entry(frame).or_insert_with(said))
    }

    /// The innermost.
    pub(super) fn last(&mut self, process: &NamedProcess<'_>, frame: u32) -> Name {
        self.all(process, frame).last().cloned().unwrap_or_else(Name::unknown)
    }
}

impl Name {
    fn of(frame: &Frame) -> Self {
        let mut args = Vec::new();
        let mut member = |key: &str, value: &str| {
            args.extend_from_slice(if args.is_empty() { b"" } else { b"," });
            write_string(&mut args, key);
            args.push(b':');
            write_string(&mut args, value);
        };
        if let Some(file) = &frame.filename {
            let line = frame.first_line.or(frame.position.line).filter(|line| *line > 0);
            member("file", &line.map_or_else(|| file.to_string(), |line| format!("{file}:{line}")));
        }
        if let Some(module) = &frame.module {
            member("module", module);
        }
        let text = |text: &str| {
            let mut out = Vec::new();
            write_string(&mut out, text);
            out.into_boxed_slice()
        };
        let name = frame.qualname.as_ref().unwrap_or(&frame.name);
        Self { text: text(name), category: text(frame.kind.as_str()), args: args.into() }
    }

    fn unknown() -> Self {
        let text = format!("\"{}\"", Frame::UNKNOWN).into_bytes().into();
        Self { text, category: b"\"label\"".as_slice().into(), args: b"".as_slice().into() }
    }
}
