//! A named frame as C sees it.

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use stackweave_profile::{Frame, FrameKind};

/// What a frame is a frame of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum stackweave_kind {
    /// Machine code.
    STACKWEAVE_KIND_NATIVE = 1,
    /// Python code.
    STACKWEAVE_KIND_PYTHON = 2,
    /// Code of another interpreter: a registered source's.
    STACKWEAVE_KIND_SCRIPT = 3,
    /// What the generated code of the Python frame inside it was made from.
    STACKWEAVE_KIND_EXTRA = 4,
    /// A name that somebody gave to what happens, and not code.
    STACKWEAVE_KIND_LABEL = 5,
}

const _: () = {
    let known = [
        stackweave_kind::STACKWEAVE_KIND_NATIVE,
        stackweave_kind::STACKWEAVE_KIND_PYTHON,
        stackweave_kind::STACKWEAVE_KIND_SCRIPT,
        stackweave_kind::STACKWEAVE_KIND_EXTRA,
        stackweave_kind::STACKWEAVE_KIND_LABEL,
    ];
    assert!(known.len() == FrameKind::ALL.len());
    let mut at = 0;
    while at < known.len() {
        assert!(known[at] as u32 == FrameKind::ALL[at] as u32, "a kind has one number, in C and here");
        at += 1;
    }
};

impl From<FrameKind> for stackweave_kind {
    fn from(kind: FrameKind) -> Self {
        match kind {
            FrameKind::Python => Self::STACKWEAVE_KIND_PYTHON,
            FrameKind::Native => Self::STACKWEAVE_KIND_NATIVE,
            FrameKind::Script => Self::STACKWEAVE_KIND_SCRIPT,
            FrameKind::Extra => Self::STACKWEAVE_KIND_EXTRA,
            FrameKind::Label => Self::STACKWEAVE_KIND_LABEL,
        }
    }
}

/// A named frame. Texts are in UTF-8, and valid during the call that they are passed to. A number that is not known is 0:
/// lines and columns, of all kinds of frames, count from 1.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct stackweave_frame {
    /// The size of this structure, in bytes, in the library's version.
    pub size: usize,
    /// What it is a frame of.
    pub kind: stackweave_kind,
    /// Whether the call of this function was inlined into the next frame's.
    pub is_inlined: bool,
    /// The function; its place, such as `libfoo.so+0x1234`, if it has no name. Never null.
    pub name: *const c_char,
    /// The function with the classes and functions around it; null if its language has no such names.
    pub qualname: *const c_char,
    /// The source file; null if it is not known.
    pub filename: *const c_char,
    /// The file name of the module that holds a native frame, without folders; null for others.
    pub module: *const c_char,
    /// Where the call, or the instruction, begins.
    pub line: u32,
    /// As `line`; for Python in UTF-8 bytes.
    pub column: u32,
    /// Where it ends.
    pub end_line: u32,
    /// The column before which it ends.
    pub end_column: u32,
    /// The address of a native frame; 0 for others.
    pub address: u64,
}

/// The texts of one frame, each with a null byte behind it.
#[derive(Debug, Default)]
pub(crate) struct Texts(Vec<u8>);

impl Texts {
    /// The frame for C, valid until the next one is written here.
    pub(crate) fn write(&mut self, frame: &Frame) -> stackweave_frame {
        let texts = [Some(&frame.name), frame.qualname.as_ref(), frame.filename.as_ref(), frame.module.as_ref()];
        self.0.clear();
        let places = texts.map(|text| text.map(|text| self.append(text)));
        let text = |index: usize| places[index].map_or(ptr::null(), |place| self.0[place..].as_ptr().cast());
        // Python's columns count from 0, those of DWARF from 1 already.
        let from_0 = u32::from(frame.kind != FrameKind::Native);
        let column = |column: Option<u32>| column.map_or(0, |column| column.saturating_add(from_0));
        stackweave_frame {
            size: size_of::<stackweave_frame>(),
            kind: frame.kind.into(),
            is_inlined: frame.is_inlined,
            name: text(0),
            qualname: text(1),
            filename: text(2),
            module: text(3),
            line: frame.position.line.unwrap_or(0),
            column: column(frame.position.column),
            end_line: frame.position.end_line.unwrap_or(0),
            end_column: column(frame.position.end_column),
            address: frame.address.unwrap_or(0),
        }
    }

    /// A text that holds a null byte ends there.
    fn append(&mut self, text: &Arc<str>) -> usize {
        let place = self.0.len();
        self.0.extend(text.bytes().take_while(|byte| *byte != 0));
        self.0.push(0);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackweave_core::Position;
    use std::ffi::CStr;

    fn frame(kind: FrameKind) -> Frame {
        Frame {
            kind,
            name: "f\0g".into(),
            qualname: Some("C.f".into()),
            filename: None,
            first_line: None,
            position: Position { line: Some(3), end_line: None, column: Some(0), end_column: Some(9) },
            module: Some("".into()),
            is_inlined: true,
            address: Some(7),
        }
    }

    #[test]
    fn texts_end_and_columns_count_from_one() {
        let mut texts = Texts::default();
        let written = texts.write(&frame(FrameKind::Python));
        // SAFETY: written just now, with null bytes.
        let text = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
        assert_eq!([written.name, written.qualname, written.module].map(text), ["f", "C.f", ""]);
        assert!(written.filename.is_null());
        assert_eq!((written.line, written.column, written.end_line, written.end_column), (3, 1, 0, 10));
        assert_eq!((written.is_inlined, written.address), (true, 7));
        let native = texts.write(&frame(FrameKind::Native));
        assert_eq!((native.column, native.end_column), (0, 9));
    }
}
