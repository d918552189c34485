//! A named frame, as the C interface represents it.

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use stackweave_profile::{Frame, FrameKind};

/// The kind of code that a frame runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum stackweave_frame_kind {
    /// Machine code.
    STACKWEAVE_FRAME_NATIVE = 1,
    /// Python code.
    STACKWEAVE_FRAME_PYTHON = 2,
    /// Code of another interpreter, which is registered as a frame source.
    STACKWEAVE_FRAME_SCRIPT = 3,
    /// The original of the generated code in the Python frame that it calls.
    STACKWEAVE_FRAME_EXTRA = 4,
    /// A name that the program gave to an activity, instead of code.
    STACKWEAVE_FRAME_SPAN = 5,
}

const _: () = {
    let known = [
        stackweave_frame_kind::STACKWEAVE_FRAME_NATIVE,
        stackweave_frame_kind::STACKWEAVE_FRAME_PYTHON,
        stackweave_frame_kind::STACKWEAVE_FRAME_SCRIPT,
        stackweave_frame_kind::STACKWEAVE_FRAME_EXTRA,
        stackweave_frame_kind::STACKWEAVE_FRAME_SPAN,
    ];
    assert!(known.len() == FrameKind::ALL.len());
    let mut index = 0;
    while index < known.len() {
        assert!(known[index] as u32 == FrameKind::ALL[index] as u32, "a kind has the same number in C and in Rust");
        index += 1;
    }
};

impl From<FrameKind> for stackweave_frame_kind {
    fn from(kind: FrameKind) -> Self {
        match kind {
            FrameKind::Python => Self::STACKWEAVE_FRAME_PYTHON,
            FrameKind::Native => Self::STACKWEAVE_FRAME_NATIVE,
            FrameKind::Script => Self::STACKWEAVE_FRAME_SCRIPT,
            FrameKind::Extra => Self::STACKWEAVE_FRAME_EXTRA,
            FrameKind::Span => Self::STACKWEAVE_FRAME_SPAN,
        }
    }
}

/// A named frame. Strings are UTF-8, and valid during the callback that receives them. An unknown number is 0: lines and
/// columns count from 1 for all kinds of frames.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct stackweave_frame {
    /// The size of this structure in the library's version, in bytes.
    pub size: usize,
    /// The kind of code.
    pub kind: stackweave_frame_kind,
    /// Whether the compiler inlined this function into the function of the next frame.
    pub is_inlined: bool,
    /// The function, or its module and offset, such as `libfoo.so+0x1234`, if it has no name. Never null.
    pub name: *const c_char,
    /// The function, qualified with its classes and outer functions; null if the language has no qualified names.
    pub qualname: *const c_char,
    /// The source file; null if it is unknown.
    pub filename: *const c_char,
    /// The file name, without folders, of the module of a native frame; null for other frames.
    pub module: *const c_char,
    /// The line on which the call or the instruction begins.
    pub line: u32,
    /// The column at which it begins; in UTF-8 bytes for Python.
    pub column: u32,
    /// The line on which it ends.
    pub end_line: u32,
    /// The column before which it ends.
    pub end_column: u32,
    /// The address of a native frame; 0 for other frames.
    pub address: u64,
}

/// The strings of one frame, each followed by a null byte.
#[derive(Debug, Default)]
pub(crate) struct FrameTexts(Vec<u8>);

impl FrameTexts {
    /// Converts a frame for C. The result is valid until the next call.
    pub(crate) fn write(&mut self, frame: &Frame) -> stackweave_frame {
        let texts = [Some(&frame.name), frame.qualname.as_ref(), frame.filename.as_ref(), frame.module.as_ref()];
        self.0.clear();
        let offsets = texts.map(|text| text.map(|text| self.append(text)));
        let text = |index: usize| offsets[index].map_or(ptr::null(), |offset| self.0[offset..].as_ptr().cast());
        // Columns of Python count from 0, columns of DWARF count from 1.
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

    /// Appends a string up to its first null byte. Returns its offset.
    fn append(&mut self, text: &Arc<str>) -> usize {
        let offset = self.0.len();
        self.0.extend(text.bytes().take_while(|byte| *byte != 0));
        self.0.push(0);
        offset
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
            is_own: false,
        }
    }

    #[test]
    fn strings_are_null_terminated_and_columns_count_from_1() {
        let mut texts = FrameTexts::default();
        let written = texts.write(&frame(FrameKind::Python));
        // SAFETY: the strings were just written, with null bytes.
        let text = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
        assert_eq!([written.name, written.qualname, written.module].map(text), ["f", "C.f", ""]);
        assert!(written.filename.is_null());
        assert_eq!((written.line, written.column, written.end_line, written.end_column), (3, 1, 0, 10));
        assert_eq!((written.is_inlined, written.address), (true, 7));
        let native = texts.write(&frame(FrameKind::Native));
        assert_eq!((native.column, native.end_column), (0, 9));
    }
}
