//! A frame, named.

use std::sync::Arc;

use stackweave_core::{Position, SourceLocation};

pub use stackweave_core::FrameKind;

/// How the name of a file ends inside of which a stack begins: see [`Frame::is_entrance`].
const ENTRANCE: &str = "/stackweave/_entrance.py";

/// One frame of a resolved stack. What is not known is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// What it is a frame of.
    pub kind: FrameKind,
    /// The function. One that has no name is known by its place: `libfoo.so+0x1234`, or `0x7f0123456789` in no
    /// module; an interpreter's that nobody can tell is [`Frame::UNKNOWN`].
    pub name: Arc<str>,
    /// The function with the classes and functions around it, where its language has such names.
    pub qualname: Option<Arc<str>>,
    /// The source file, as the compiler or the interpreter was given it.
    pub filename: Option<Arc<str>>,
    /// The line that the function begins on, where that is known.
    pub first_line: Option<u32>,
    /// The place in the file. Columns of native frames count from 1, as DWARF's do, and have no end; those of
    /// Python's count UTF-8 bytes from 0, as `co_positions` does.
    pub position: Position,
    /// The file name of the module that holds a native frame, without folders.
    pub module: Option<Arc<str>>,
    /// Whether the call of this function was inlined into the next frame's.
    pub is_inlined: bool,
    /// The address that was captured; the same in all frames of a chain of inlined calls.
    pub address: Option<u64>,
}

impl Frame {
    /// The name of an interpreter's frame that nobody can tell.
    pub const UNKNOWN: &'static str = "<unknown>";

    /// Whether it is of Stackweave's file that runs what is recorded inside of a larger program: a cell of a notebook, a
    /// test. What lies outside of it is of no interest, nor is itself.
    pub fn is_entrance(&self) -> bool {
        let file = self.filename.as_deref().filter(|_| self.kind == FrameKind::Python);
        file.is_some_and(|file| file.ends_with(ENTRANCE))
    }

    /// The name, unless it is only the place of native code that has none.
    pub fn own_name(&self) -> Option<&str> {
        let is_place = match &self.module {
            Some(module) => self.name.strip_prefix(&**module).is_some_and(|rest| rest.starts_with("+0x")),
            None => self.name.starts_with("0x"),
        };
        (self.kind != FrameKind::Native || !is_place).then_some(&*self.name)
    }

    /// A frame at a place that an interpreter, or a code generator, has named.
    pub(crate) fn located(kind: FrameKind, location: SourceLocation) -> Self {
        Self {
            qualname: location.qualname,
            filename: Some(location.filename),
            first_line: location.first_line,
            position: location.position,
            ..Self::named(kind, location.name)
        }
    }

    /// A frame of which nothing but its name is known.
    pub(crate) fn named(kind: FrameKind, name: Arc<str>) -> Self {
        Self {
            kind,
            name,
            qualname: None,
            filename: None,
            first_line: None,
            position: Position::default(),
            module: None,
            is_inlined: false,
            address: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_no_name() {
        let own_name = |kind, name: &str, module: Option<&str>| {
            let frame = Frame { module: module.map(Arc::from), ..Frame::named(kind, Arc::from(name)) };
            frame.own_name().map(ToOwned::to_owned)
        };
        let (native, python) = (FrameKind::Native, FrameKind::Python);
        assert_eq!(own_name(native, "libhost.so+0x12", Some("libhost.so")), None);
        assert_eq!(own_name(native, "0x7f0123456789", None), None);
        assert_eq!(own_name(native, "libhost.so::run()", Some("libhost.so")).as_deref(), Some("libhost.so::run()"));
        assert_eq!(own_name(python, "0x12", None).as_deref(), Some("0x12"));
    }
}
