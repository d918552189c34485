//! The contents of a code object, and copies of them.

use stackweave_core::Position;

use crate::PythonFrame;
use crate::frame::CodePointer;
use crate::interpreter::Interpreter;
use crate::line_table::{LineTable, LineTableFormat};
use crate::memory::{is_plausible, load, word};
use crate::text::{StrText, bytes, text};

/// The offset of an object's type.
const OBJECT_TYPE: usize = 8;

/// All that is needed to name a frame later, when the code object may be gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeInfo {
    /// `co_name`.
    pub name: String,
    /// `co_qualname`, from 3.11 on.
    pub qualname: Option<String>,
    /// `co_filename`.
    pub filename: String,
    /// `co_firstlineno`.
    pub first_line: i32,
    /// `co_linetable`.
    pub line_table: Box<[u8]>,
    /// The format of the line table.
    pub format: LineTableFormat,
}

impl CodeInfo {
    /// Returns the line table, for lookups.
    pub fn lines(&self) -> LineTable<'_> {
        LineTable::new(&self.line_table, self.first_line, self.format)
    }

    /// Returns the position of a frame's instruction: the first line if the frame has not begun.
    pub fn position(&self, instruction: u32) -> Position {
        if instruction == PythonFrame::NOT_BEGUN {
            let line = u32::try_from(self.first_line).ok();
            return Position { line, end_line: line, ..Position::default() };
        }
        self.lines().position(instruction)
    }
}

/// The contents of a code object, borrowed from it or from a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeContents<'a> {
    pub(crate) name: StrText<'a>,
    pub(crate) qualname: Option<StrText<'a>>,
    pub(crate) filename: StrText<'a>,
    pub(crate) first_line: i32,
    pub(crate) line_table: &'a [u8],
    pub(crate) format: LineTableFormat,
}

impl Interpreter {
    /// Copies a code object. `None` if it is an object of another type.
    ///
    /// Reads only immutable fields, and calls nothing, so the GIL is not needed while the object lives.
    ///
    /// # Safety
    /// The object is alive during the call: one of its frames has not returned, or the caller holds a reference.
    pub unsafe fn read_code(&self, code: CodePointer) -> Option<CodeInfo> {
        // SAFETY: passed on to the caller.
        let contents = unsafe { self.code_contents(code.address()) }?;
        Some(CodeInfo {
            name: contents.name.decode(),
            qualname: contents.qualname.map(StrText::decode),
            filename: contents.filename.decode(),
            first_line: contents.first_line,
            line_table: contents.line_table.into(),
            format: contents.format,
        })
    }

    /// Borrows the contents of a code object. Copies, calls and allocates nothing.
    ///
    /// # Safety
    /// As for [`Interpreter::read_code`], for as long as the contents are used.
    pub(crate) unsafe fn code_contents<'a>(&self, address: u64) -> Option<CodeContents<'a>> {
        let layout = self.layout;
        // SAFETY: the address is that of a live object, which begins with its reference count and its type.
        if !is_plausible(address) || unsafe { word(address, OBJECT_TYPE) } != self.code_type {
            return None;
        }
        // SAFETY: the object is a live code object, which keeps its strings alive; none of them is ever replaced
        // (except `co_filename` by an importer, before the code first runs).
        unsafe {
            let text_at = |offset| text(&layout.text, word(address, offset));
            Some(CodeContents {
                name: text_at(layout.code.name)?,
                qualname: layout.code.qualname.and_then(text_at),
                filename: text_at(layout.code.filename)?,
                first_line: load(address, layout.code.first_line),
                line_table: bytes(&layout.text, word(address, layout.code.line_table))?,
                format: layout.line_table,
            })
        }
    }
}
