//! Named frames.

use std::sync::Arc;

use stackweave_core::{Position, SourceLocation};

pub use stackweave_core::FrameKind;

/// The suffix of the file within which stacks begin: see [`Frame::is_boundary`].
const BOUNDARY: &str = "/stackweave/_boundary.py";

/// A frame of a resolved stack. Unknown fields are `None`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The kind of the frame.
    pub kind: FrameKind,
    /// The function. A native one without a name has its location instead: `libfoo.so+0x1234`, or `0x7f0123456789`
    /// outside modules; an interpreter's frame without a description is [`Frame::UNKNOWN`].
    pub name: Arc<str>,
    /// The function with the classes and functions around it, in languages that have such names.
    pub qualname: Option<Arc<str>>,
    /// The source file, as given to the compiler or the interpreter.
    pub filename: Option<Arc<str>>,
    /// The first line of the function, if it is known.
    pub first_line: Option<u32>,
    /// The position in the file. Columns of native frames count from 1, as in DWARF, and have no end; those of Python
    /// count UTF-8 bytes from 0, as in `co_positions`.
    pub position: Position,
    /// The file name of a native frame's module, without folders.
    pub module: Option<Arc<str>>,
    /// Whether this call was inlined into the next frame.
    pub is_inlined: bool,
    /// The captured address; the same in all frames of a chain of inlined calls.
    pub address: Option<u64>,
    /// Whether its file is in the folder of Stackweave's Python package, if that is known.
    pub is_own: bool,
}

impl Frame {
    /// The name of an interpreter's frame without a description.
    pub const UNKNOWN: &'static str = "<unknown>";

    /// Returns whether it is in Stackweave's file that runs the recorded part of a larger program: a cell of a
    /// notebook, a test. Frames outside of it, and the frame itself, are not shown.
    pub fn is_boundary(&self) -> bool {
        let file = self.filename.as_deref().filter(|_| self.kind == FrameKind::Python);
        file.is_some_and(|file| file.ends_with(BOUNDARY))
    }

    /// Returns whether it is a Python frame of a file in this folder.
    pub fn is_in(&self, folder: &str) -> bool {
        let rest = self.filename.as_deref().and_then(|file| file.strip_prefix(folder));
        self.kind == FrameKind::Python && rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns the name, unless it is only the location of native code without a name.
    pub fn known_name(&self) -> Option<&str> {
        let is_place = match &self.module {
            Some(module) => self.name.strip_prefix(&**module).is_some_and(|rest| rest.starts_with("+0x")),
            None => self.name.starts_with("0x"),
        };
        (self.kind != FrameKind::Native || !is_place).then_some(&*self.name)
    }

    /// Creates a frame from a location that an interpreter, or a code generator, has described.
    pub(crate) fn located(kind: FrameKind, location: SourceLocation) -> Self {
        Self {
            qualname: location.qualname,
            filename: Some(location.filename),
            first_line: location.first_line,
            position: location.position,
            ..Self::named(kind, location.name)
        }
    }

    /// Creates a frame of which only the name is known.
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
            is_own: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_not_a_name() {
        let known_name = |kind, name: &str, module: Option<&str>| {
            let frame = Frame { module: module.map(Arc::from), ..Frame::named(kind, Arc::from(name)) };
            frame.known_name().map(ToOwned::to_owned)
        };
        let (native, python) = (FrameKind::Native, FrameKind::Python);
        assert_eq!(known_name(native, "libhost.so+0x12", Some("libhost.so")), None);
        assert_eq!(known_name(native, "0x7f0123456789", None), None);
        assert_eq!(known_name(native, "libhost.so::run()", Some("libhost.so")).as_deref(), Some("libhost.so::run()"));
        assert_eq!(known_name(python, "0x12", None).as_deref(), Some("0x12"));
    }
}
