//! Code objects, read once each.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use stackweave_core::Position;
use stackweave_cpython::layout::{Layout, Text, is_plausible};
use stackweave_cpython::{LineTable, PythonFrame};

use super::snapshot::Snapshot;

/// Where every object has its type, and some have their size.
const OBJECT_TYPE: usize = 8;
const OBJECT_SIZE: usize = 16;
/// Where a type has its name.
const TYPE_NAME: usize = 24;
const CODE_TYPE: &[u8] = b"code\0";
/// Of longer names, so many bytes are shown.
const LONGEST_NAME: usize = 1 << 14;
/// No line table is longer.
const LONGEST_TABLE: u64 = 1 << 24;

/// What a code object says of itself.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) name: Arc<str>,
    pub(super) qualname: Option<Arc<str>>,
    pub(super) filename: Arc<str>,
    first_line: i32,
    line_table: Vec<u8>,
    /// How many bytes of code there are; not on 3.10.
    pub(super) length: u64,
    pub(super) first_traceable: u32,
    positions: RefCell<HashMap<u32, Position>>,
}

/// The code objects that were met.
pub(super) struct Codes<'a> {
    snapshot: &'a Snapshot<'a>,
    layout: &'a Layout,
    known: RefCell<HashMap<u64, Option<Rc<Code>>>>,
    texts: RefCell<HashMap<u64, Option<Arc<str>>>>,
    /// Whether there is the type of code objects.
    types: RefCell<HashMap<u64, bool>>,
}

impl<'a> Codes<'a> {
    pub(super) fn new(snapshot: &'a Snapshot<'a>, layout: &'a Layout) -> Self {
        Self { snapshot, layout, known: RefCell::default(), texts: RefCell::default(), types: RefCell::default() }
    }

    /// The code object at an address; `None` if there is none.
    pub(super) fn at(&self, address: u64) -> Option<Rc<Code>> {
        if let Some(known) = self.known.borrow().get(&address) {
            return known.clone();
        }
        let code = self.read(address).map(Rc::new);
        self.known.borrow_mut().insert(address, code.clone());
        code
    }

    fn read(&self, address: u64) -> Option<Code> {
        if !is_plausible(address) || !self.is_code_type(self.snapshot.word(address, OBJECT_TYPE)?) {
            return None;
        }
        let (layout, has_units) = (&self.layout.code, self.layout.code.units != 0);
        let text_at = |offset| self.text(self.snapshot.word(address, offset)?);
        let name = text_at(layout.name)?;
        let qualname = layout.qualname.map(text_at);
        Some(Code {
            filename: text_at(layout.filename)?,
            qualname: qualname.flatten().map(|qualname| if qualname == name { Arc::clone(&name) } else { qualname }),
            name,
            first_line: self.snapshot.half_word(address, layout.first_line)?.cast_signed(),
            line_table: self.bytes(self.snapshot.word(address, layout.line_table)?)?,
            length: if has_units { self.snapshot.word(address, OBJECT_SIZE)?.saturating_mul(2) } else { 0 },
            first_traceable: if has_units { self.snapshot.half_word(address, layout.first_traceable)? } else { 0 },
            positions: RefCell::default(),
        })
    }

    /// By its name: which address it has need not be told by symbols.
    fn is_code_type(&self, address: u64) -> bool {
        let read = || {
            let mut name = [0; CODE_TYPE.len()];
            let at = is_plausible(address).then(|| self.snapshot.word(address, TYPE_NAME)).flatten()?;
            self.snapshot.read(at, &mut name)?;
            Some(name == CODE_TYPE)
        };
        *self.types.borrow_mut().entry(address).or_insert_with(|| read().unwrap_or(false))
    }

    fn text(&self, address: u64) -> Option<Arc<str>> {
        if let Some(known) = self.texts.borrow().get(&address) {
            return known.clone();
        }
        let text = self.read_text(address).map(Arc::from);
        self.texts.borrow_mut().insert(address, text.clone());
        text
    }

    fn read_text(&self, address: u64) -> Option<String> {
        let layout = &self.layout.text;
        let (length, state) = is_plausible(address)
            .then(|| {
                Some((self.snapshot.word(address, layout.length)?, self.snapshot.half_word(address, layout.state)?))
            })
            .flatten()?;
        let characters = layout.characters(usize::try_from(length).ok()?, state)?;
        let data = if characters.is_compact {
            address.checked_add(characters.start as u64)?
        } else {
            self.snapshot.word(address, characters.start)?
        };
        let mut bytes = vec![0; characters.length.min(LONGEST_NAME)];
        self.snapshot.read(data, &mut bytes)?;
        let mut text = Text { width: characters.width, bytes: &bytes }.decode();
        if bytes.len() < characters.length {
            text.push('\u{2026}');
        }
        Some(text)
    }

    fn bytes(&self, address: u64) -> Option<Vec<u8>> {
        let layout = &self.layout.text;
        let length = is_plausible(address).then(|| self.snapshot.word(address, layout.bytes_length)).flatten()?;
        if length > LONGEST_TABLE {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.snapshot.read(address.checked_add(layout.bytes as u64)?, &mut bytes)?;
        Some(bytes)
    }

    /// Where an instruction comes from: the first line for a frame that has not begun.
    pub(super) fn position(&self, code: &Code, instruction: u32) -> Position {
        if instruction == PythonFrame::NOT_BEGUN {
            let line = code.first_line();
            return Position { line, end_line: line, ..Position::default() };
        }
        let read = || match self.snapshot.charge(code.line_table.len() as u64) {
            Some(()) => LineTable::new(&code.line_table, code.first_line, self.layout.line_table).position(instruction),
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
