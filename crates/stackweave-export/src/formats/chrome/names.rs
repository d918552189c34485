//! The names of frames as JSON, each formatted once.

use std::collections::HashMap;
use std::rc::Rc;

use stackweave_profile::Frame;

use crate::activity::NamedProcess;
use crate::formats::chrome::line::write_string;

/// The functions of each frame, outermost first, by the number of the frame.
#[derive(Debug, Default)]
pub(super) struct EventNames {
    functions: HashMap<u32, Rc<[EventName]>>,
    /// Members of an object: the line of the call in a calling frame, if it is known.
    callers: HashMap<u32, Rc<[u8]>>,
}

/// The text that events of a function share.
#[derive(Clone, Debug)]
pub(super) struct EventName {
    pub(super) text: Box<[u8]>,
    pub(super) category: Box<[u8]>,
    /// Members of an object: the location.
    pub(super) args: Box<[u8]>,
}

impl EventNames {
    pub(super) fn functions(&mut self, process: &NamedProcess<'_>, frame: u32) -> Rc<[EventName]> {
        let named = || match process.chain(frame).map(EventName::of).collect::<Rc<[EventName]>>() {
            none if none.is_empty() => Rc::new([EventName::unknown()]),
            names => names,
        };
        Rc::clone(self.functions.entry(frame).or_insert_with(named))
    }

    /// Returns the member for the frame that calls.
    pub(super) fn caller(&mut self, process: &NamedProcess<'_>, frame: u32) -> Rc<[u8]> {
        let member = || {
            let mut member = Vec::new();
            if let Some(line) = process.line_of(frame) {
                member.extend_from_slice(b"\"called from\":");
                write_string(&mut member, &line);
            }
            member.into()
        };
        Rc::clone(self.callers.entry(frame).or_insert_with(member))
    }

    /// Returns the innermost function.
    pub(super) fn last(&mut self, process: &NamedProcess<'_>, frame: u32) -> EventName {
        self.functions(process, frame).last().cloned().unwrap_or_else(EventName::unknown)
    }
}

impl EventName {
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
