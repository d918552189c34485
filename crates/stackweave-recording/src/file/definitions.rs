//! The coding of the definitions in a Definitions block.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use stackweave_core::{BuildId, CodeAddress, EventKind, Field, FieldType, FrameKind, Module, Position, Role};

use super::error::BlockError;
use super::recorded_frames::{RecordedFrame, RecordedName, RecordedThread};
use super::varint::{Cursor, put, put_bytes, put_signed};

/// The tags of runs of definitions. Readers skip unknown tags.
pub(super) mod tag {
    pub(in crate::file) const KINDS: u8 = 1;
    pub(in crate::file) const STRINGS: u8 = 2;
    pub(in crate::file) const MODULES: u8 = 3;
    pub(in crate::file) const FRAMES: u8 = 4;
    pub(in crate::file) const NAMES: u8 = 5;
    pub(in crate::file) const STACKS: u8 = 6;
    pub(in crate::file) const THREADS: u8 = 7;
}

const RETURN_ADDRESS: u8 = 1;
const EXACT_ADDRESS: u8 = 2;
const PYTHON: u8 = 3;
const PYTHON_ENTRY: u8 = 4;
const SCRIPT: u8 = 5;
const LABEL: u8 = 6;

/// The bits for the optional values of a name.
mod has {
    pub(super) const QUALNAME: u8 = 1;
    pub(super) const FIRST_LINE: u8 = 1 << 1;
    pub(super) const LINE: u8 = 1 << 2;
    pub(super) const END_LINE: u8 = 1 << 3;
    pub(super) const COLUMN: u8 = 1 << 4;
    pub(super) const END_COLUMN: u8 = 1 << 5;
    pub(super) const MODULE: u8 = 1 << 6;
    pub(super) const INLINED: u8 = 1 << 7;
}

pub(super) fn put_kind(out: &mut Vec<u8>, kind: &EventKind) {
    put_bytes(out, kind.name.as_bytes());
    out.push(kind.role as u8);
    put(out, kind.fields.len() as u64);
    for field in kind.fields.iter() {
        out.push(field.field_type as u8);
        put_bytes(out, field.name.as_bytes());
    }
}

/// Reads a kind. An unknown role becomes an instant, an unknown type a number, so that events of later versions can still be
/// decoded. Files contain no calls: two frames replace each.
pub(super) fn kind(rest: &mut Cursor<'_>) -> Result<EventKind, BlockError> {
    let name = rest.text()?;
    let role = Role::from_number(rest.byte()?).unwrap_or(Role::Instant);
    let count = rest.count(2)?;
    if count > EventKind::MAX_FIELDS {
        return Err(BlockError::TooMuch);
    }
    let mut fields = Vec::with_capacity(count);
    for _ in 0..count {
        let field_type = FieldType::from_number(rest.byte()?).filter(|known| *known != FieldType::Call);
        let field_type = field_type.unwrap_or(FieldType::Unsigned);
        fields.push(Field { name: rest.text()?.into(), field_type });
    }
    let kind = EventKind { name: name.into(), role, fields: fields.into() };
    if kind.is_valid() { Ok(kind) } else { Err(BlockError::Contradiction) }
}

pub(super) fn put_module(out: &mut Vec<u8>, module: &Module) {
    put_bytes(out, module.path.as_os_str().as_bytes());
    put_bytes(out, module.build_id.as_ref().map_or(&[], BuildId::as_bytes));
    put(out, module.bias);
    put(out, module.start);
    put(out, module.end);
}

pub(super) fn module(rest: &mut Cursor<'_>) -> Result<Module, BlockError> {
    Ok(Module {
        path: OsStr::from_bytes(rest.bytes()?).into(),
        build_id: BuildId::new(rest.bytes()?),
        bias: rest.varint()?,
        start: rest.varint()?,
        end: rest.varint()?,
    })
}

/// The coding of frames in a run. An address is written as the difference to the previous one.
#[derive(Debug, Default)]
pub(super) struct FrameCoding {
    address: u64,
}

impl FrameCoding {
    pub(super) fn put(&mut self, out: &mut Vec<u8>, frame: RecordedFrame) {
        match frame {
            RecordedFrame::Native { address, module } => {
                out.push(if address.is_exact() { EXACT_ADDRESS } else { RETURN_ADDRESS });
                put_signed(out, address.address().wrapping_sub(self.address).cast_signed());
                put(out, module.unwrap_or(0).into());
                self.address = address.address();
            }
            RecordedFrame::Python { code, instruction, entered_from_native } => {
                out.push(if entered_from_native { PYTHON_ENTRY } else { PYTHON });
                put(out, code.into());
                put(out, instruction.into());
            }
            RecordedFrame::Script { source, word } => {
                out.extend([SCRIPT, source]);
                put(out, word);
            }
            RecordedFrame::Label { label } => {
                out.push(LABEL);
                put(out, label.into());
            }
        }
    }

    pub(super) fn take(&mut self, rest: &mut Cursor<'_>) -> Result<RecordedFrame, BlockError> {
        Ok(match rest.byte()? {
            kind @ (RETURN_ADDRESS | EXACT_ADDRESS) => {
                self.address = self.address.wrapping_add(rest.signed()?.cast_unsigned());
                let exact = kind == EXACT_ADDRESS;
                let of = if exact { CodeAddress::instruction_pointer } else { CodeAddress::return_address };
                RecordedFrame::Native { address: of(self.address), module: number(rest)? }
            }
            kind @ (PYTHON | PYTHON_ENTRY) => RecordedFrame::Python {
                code: rest.small()?,
                instruction: rest.small()?,
                entered_from_native: kind == PYTHON_ENTRY,
            },
            SCRIPT => RecordedFrame::Script { source: rest.byte()?, word: rest.varint()? },
            LABEL => RecordedFrame::Label { label: rest.small()? },
            _ => return Err(BlockError::Contradiction),
        })
    }
}

pub(super) fn put_name(out: &mut Vec<u8>, name: &RecordedName) {
    let position = &name.position;
    let optional = [
        (has::QUALNAME, name.qualname),
        (has::FIRST_LINE, name.first_line),
        (has::LINE, position.line),
        (has::END_LINE, position.end_line),
        (has::COLUMN, position.column),
        (has::END_COLUMN, position.end_column),
        (has::MODULE, name.module),
    ];
    let mut mask = if name.is_inlined { has::INLINED } else { 0 };
    for (bit, value) in optional {
        mask |= if value.is_some() { bit } else { 0 };
    }
    out.extend([name.kind as u8, mask]);
    put(out, name.name.into());
    put(out, name.filename.unwrap_or(0).into());
    for value in optional.into_iter().filter_map(|(_, value)| value) {
        put(out, value.into());
    }
}

pub(super) fn name(rest: &mut Cursor<'_>) -> Result<RecordedName, BlockError> {
    let kind = FrameKind::from_number(rest.byte()?).ok_or(BlockError::Contradiction)?;
    let mask = rest.byte()?;
    let (name, filename) = (rest.small()?, number(rest)?);
    let mut optional = |bit: u8| if mask & bit == 0 { Ok(None) } else { rest.small().map(Some) };
    Ok(RecordedName {
        kind,
        name,
        filename,
        qualname: optional(has::QUALNAME)?,
        first_line: optional(has::FIRST_LINE)?,
        position: Position {
            line: optional(has::LINE)?,
            end_line: optional(has::END_LINE)?,
            column: optional(has::COLUMN)?,
            end_column: optional(has::END_COLUMN)?,
        },
        module: optional(has::MODULE)?,
        is_inlined: mask & has::INLINED != 0,
    })
}

pub(super) fn put_thread(out: &mut Vec<u8>, thread: &RecordedThread) {
    put(out, thread.number.into());
    put(out, thread.tid.into());
    put_bytes(out, thread.name.as_bytes());
}

pub(super) fn thread(rest: &mut Cursor<'_>) -> Result<RecordedThread, BlockError> {
    Ok(RecordedThread { number: rest.small()?, tid: rest.small()?, name: rest.text()? })
}

fn number(rest: &mut Cursor<'_>) -> Result<Option<u32>, BlockError> {
    rest.small().map(|number| (number != 0).then_some(number))
}
