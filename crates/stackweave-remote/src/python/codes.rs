//! Code objects, read once each.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use stackweave_core::Position;
use stackweave_cpython::{LineTable, PythonFrame};

use super::objects::Objects;

/// The offset of an object's size.
const OBJECT_SIZE: usize = 16;

/// The contents of a code object.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) name: Arc<str>,
    pub(super) qualname: Option<Arc<str>>,
    pub(super) filename: Arc<str>,
    first_line: i32,
    line_table: Vec<u8>,
    /// The length of the code in bytes; 0 on 3.10.
    pub(super) length: u64,
    pub(super) first_traceable: u32,
    positions: RefCell<HashMap<u32, Position>>,
}

/// The code objects that were read.
pub(super) struct Codes<'a> {
    objects: &'a Objects<'a>,
    known: RefCell<HashMap<u64, Option<Rc<Code>>>>,
}

impl<'a> Codes<'a> {
    pub(super) fn new(objects: &'a Objects<'a>) -> Self {
        Self { objects, known: RefCell::default() }
    }

    /// Returns the code object at an address; `None` if there is none.
    pub(super) fn at(&self, address: u64) -> Option<Rc<Code>> {
        if let Some(known) = self.known.borrow().get(&address) {
            return known.clone();
        }
        let code = self.read(address).map(Rc::new);
        self.known.borrow_mut().insert(address, code.clone());
        code
    }

    fn read(&self, address: u64) -> Option<Code> {
        let Objects { snapshot, layout, .. } = self.objects;
        if !self.objects.is_a(address, b"code\0") {
            return None;
        }
        let (layout, has_units) = (&layout.code, layout.code.units != 0);
        let text_at = |offset| self.objects.text(snapshot.word(address, offset)?);
        let name = text_at(layout.name)?;
        let qualname = layout.qualname.map(text_at);
        Some(Code {
            filename: text_at(layout.filename)?,
            qualname: qualname.flatten().map(|qualname| if qualname == name { Arc::clone(&name) } else { qualname }),
            name,
            first_line: snapshot.half_word(address, layout.first_line)?.cast_signed(),
            line_table: self.objects.bytes(snapshot.word(address, layout.line_table)?)?,
            length: if has_units { snapshot.word(address, OBJECT_SIZE)?.saturating_mul(2) } else { 0 },
            first_traceable: if has_units { snapshot.half_word(address, layout.first_traceable)? } else { 0 },
            positions: RefCell::default(),
        })
    }

    /// Returns the position of an instruction: the first line for a frame that has not begun.
    pub(super) fn position(&self, code: &Code, instruction: u32) -> Position {
        if instruction == PythonFrame::NOT_BEGUN {
            let line = code.first_line();
            return Position { line, end_line: line, ..Position::default() };
        }
        let read = || match self.objects.snapshot.charge(code.line_table.len() as u64) {
            Some(()) => {
                LineTable::new(&code.line_table, code.first_line, self.objects.layout.line_table).position(instruction)
            }
            None => Position::default(),
        };
        *code.positions.borrow_mut().entry(instruction).or_insert_with(read)
    }
}

impl Code {
    pub(super) fn first_line(&self) -> Option<u32> {
        u32::try_from(self.first_line).ok()
    }
}
