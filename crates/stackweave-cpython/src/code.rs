//! What a code object says about itself, copied out of it.

use stackweave_core::Position;

use crate::PythonFrame;
use crate::frame::CodePointer;
use crate::interpreter::Interpreter;
use crate::line_table::{LineTable, LineTableFormat};
use crate::memory::{is_plausible, load, word};
use crate::text::{Text, bytes, text};

/// Where every object has its type.
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
    /// How the line table is written.
    pub format: LineTableFormat,
}

impl CodeInfo {
    /// The line table, to be asked.
    pub fn lines(&self) -> LineTable<'_> {
        LineTable::new(&self.line_table, self.first_line, self.format)
    }

    /// Where the instruction of a frame comes from: the first line for a frame that has not begun.
    pub fn position(&self, instruction: u32) -> Position {
        if instruction == PythonFrame::NOT_BEGUN {
            let line = u32::try_from(self.first_line).ok();
            return Position { line, end_line: line, ..Position::default() };
        }
        self.lines().position(instruction)
    }
}

/// The same, still in the code object, or wherever it was copied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeParts<'a> {
    pub(crate) name: Text<'a>,
    pub(crate) qualname: Option<Text<'a>>,
    pub(crate) filename: Text<'a>,
    pub(crate) first_line: i32,
    pub(crate) line_table: &'a [u8],
    pub(crate) format: LineTableFormat,
}

impl Interpreter {
    /// Copies a code object. `None` when it is an object of another type.
    ///
    /// Only immutable fields are read, and nothing is called, so the GIL is not needed as long as the object lives.
    ///
    /// # Safety
    /// The object is alive during the call: a frame of it has not returned, or the caller holds a reference.
    pub unsafe fn read_code(&self, code: CodePointer) -> Option<CodeInfo> {
        // SAFETY: passed on to the caller.
        let parts = unsafe { self.code_parts(code.address()) }?;
        Some(CodeInfo {
            name: parts.name.decode(),
            qualname: parts.qualname.map(Text::decode),
            filename: parts.filename.decode(),
            first_line: parts.first_line,
            line_table: parts.line_table.into(),
            format: parts.format,
        })
    }

    /// What a code object holds. Nothing is copied, called or allocated.
    ///
    /// # Safety
    /// As for [`Interpreter::read_code`]; and for as long as the parts are used.
    pub(crate) unsafe fn code_parts<'a>(&self, address: u64) -> Option<CodeParts<'a>> {
        let layout = self.layout;
        // SAFETY: what lives at the address is an object, which begins with its reference count and its type.
        if !is_plausible(address) || unsafe { word(address, OBJECT_TYPE) } != self.code_type {
            return None;
        }
        // SAFETY: the object is a live code object, which keeps its strings alive; none of them is ever replaced
        // (except `co_filename` by an importer, before the code first runs).
        unsafe {
            let text_at = |offset| text(&layout.text, word(address, offset));
            Some(CodeParts {
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
