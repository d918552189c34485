//! Maps an instruction to its source position, by the line table of its code object.
//!
//! Pure functions over bytes: any bytes give a result. The tables are immutable, so a copy can be decoded at any time,
//! without the interpreter.

use stackweave_core::Position;

/// The format of a line table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LineTableFormat {
    /// 3.10: pairs of bytes, a number of code bytes and a step in lines.
    Lines,
    /// 3.11 and later: entries of several forms, with columns.
    Locations,
    /// 3.9: pairs of bytes, a number of code bytes before a step in lines.
    Steps,
    /// An unknown format: no instruction has a position.
    Unknown,
}

/// A range of instructions that share a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    /// The offset of its first byte of code.
    pub start: u32,
    /// The offset after its last byte of code.
    pub end: u32,
    /// The position of all of them.
    pub position: Position,
}

/// A line table of one code object.
#[derive(Clone, Copy, Debug)]
pub struct LineTable<'a> {
    bytes: &'a [u8],
    first_line: i32,
    format: LineTableFormat,
}

impl<'a> LineTable<'a> {
    /// Creates the table of a code object that begins at line `first_line` from its `co_linetable`.
    pub const fn new(bytes: &'a [u8], first_line: i32, format: LineTableFormat) -> Self {
        Self { bytes, first_line, format }
    }

    /// Returns the position of the instruction at that offset in bytes; the default position for an offset outside the
    /// code.
    pub fn position(&self, instruction: u32) -> Position {
        self.ranges()
            .find(|range| range.start <= instruction && instruction < range.end)
            .map_or_else(Position::default, |range| range.position)
    }

    /// Returns all ranges, in the order of the code.
    pub const fn ranges(&self) -> LineRanges<'a> {
        LineRanges { bytes: self.bytes, line: self.first_line, offset: 0, format: self.format, is_over: false }
    }
}

/// The ranges of a [`LineTable`].
#[derive(Clone, Debug)]
pub struct LineRanges<'a> {
    bytes: &'a [u8],
    line: i32,
    offset: u32,
    format: LineTableFormat,
    /// Whether the last range, for which the table has no bytes, was returned. Only for 3.9.
    is_over: bool,
}

impl Iterator for LineRanges<'_> {
    type Item = LineRange;

    fn next(&mut self) -> Option<LineRange> {
        let (length, position) = match self.format {
            LineTableFormat::Lines => self.lines()?,
            LineTableFormat::Locations => self.location()?,
            LineTableFormat::Steps => self.steps()?,
            LineTableFormat::Unknown => return None,
        };
        let start = self.offset;
        self.offset = start.saturating_add(length);
        Some(LineRange { start, end: self.offset, position })
    }
}

const NO_LINE: i8 = i8::MIN;
const UNIT: u32 = 2;

impl LineRanges<'_> {
    fn lines(&mut self) -> Option<(u32, Position)> {
        let length = self.byte()?;
        let step = i8::from_le_bytes([self.byte()?]);
        if step == NO_LINE {
            return Some((length.into(), Position::default()));
        }
        self.step(step.into());
        Some((length.into(), self.here(0, None)))
    }

    /// Reads a range and the step in lines that follows it. After the last step the code continues.
    fn steps(&mut self) -> Option<(u32, Position)> {
        let here = self.here(0, None);
        let Some(length) = self.byte() else {
            let rest = u32::MAX - self.offset;
            return (!core::mem::replace(&mut self.is_over, true)).then_some((rest, here));
        };
        let step = i8::from_le_bytes([self.byte()?]);
        self.step(step.into());
        Some((length.into(), here))
    }

    /// Reads an entry. One byte holds the form and the length, in code units; the rest depends on the form.
    fn location(&mut self) -> Option<(u32, Position)> {
        let head = self.byte()?;
        let length = (u32::from(head & 7) + 1) * UNIT;
        let form = (head >> 3) & 15;
        let position = match form {
            15 => Position::default(),
            14 => {
                let step = self.signed_varint()?;
                self.step(step);
                let lines = self.varint()?;
                // A column is stored increased by one: zero means none.
                let (column, end_column) = (self.varint()?.checked_sub(1), self.varint()?.checked_sub(1));
                Position { column, end_column, ..self.here(lines, None) }
            }
            13 => {
                let step = self.signed_varint()?;
                self.step(step);
                self.here(0, None)
            }
            10..=12 => {
                self.step(i32::from(form) - 10);
                let columns = (self.byte()?.into(), self.byte()?.into());
                self.here(0, Some(columns))
            }
            _ => {
                let packed = u32::from(self.byte()?);
                let column = u32::from(form) * 8 + (packed >> 4);
                self.here(0, Some((column, column + (packed & 15))))
            }
        };
        Some((length, position))
    }

    fn here(&self, lines: u32, columns: Option<(u32, u32)>) -> Position {
        let line = u32::try_from(self.line).ok();
        Position {
            line,
            end_line: line.map(|line| line.saturating_add(lines)),
            column: columns.map(|(column, _)| column),
            end_column: columns.map(|(_, end_column)| end_column),
        }
    }

    fn step(&mut self, lines: i32) {
        self.line = self.line.wrapping_add(lines);
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    /// Reads six bits from each byte, the lowest first; the seventh bit means that more follow.
    fn varint(&mut self) -> Option<u32> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            value |= u32::from(byte & 63).checked_shl(shift).unwrap_or(0);
            if byte & 64 == 0 {
                return Some(value);
            }
            shift += 6;
        }
    }

    /// Reads a signed number, whose lowest bit is the sign.
    fn signed_varint(&mut self) -> Option<i32> {
        let value = self.varint()?;
        let magnitude = (value >> 1).cast_signed();
        Some(if value & 1 == 0 { magnitude } else { -magnitude })
    }
}

#[cfg(test)]
mod tests {
    use stackweave_testkit::random::Random;

    use super::*;

    fn lines(bytes: &[u8]) -> Vec<(u32, u32, Option<u32>)> {
        let table = LineTable::new(bytes, 10, LineTableFormat::Lines);
        table.ranges().map(|range| (range.start, range.end, range.position.line)).collect()
    }

    #[test]
    fn lines_step_forwards_and_backwards_and_may_be_missing() {
        let bytes = [4, 1, 2, 0x80, 6, 0xfe, 0, 5, 2, 1];
        let expected = [(0, 4, Some(11)), (4, 6, None), (6, 12, Some(9)), (12, 12, Some(14)), (12, 14, Some(15))];
        assert_eq!(lines(&bytes), expected);
        let table = LineTable::new(&bytes, 10, LineTableFormat::Lines);
        assert_eq!(table.position(12).line, Some(15));
        assert_eq!(table.position(14), Position::default());
    }

    #[test]
    fn steps_follow_their_range_and_the_last_range_has_no_end() {
        let table = LineTable::new(&[4, 1, 6, 0xfe, 255, 0, 3, 2], 10, LineTableFormat::Steps);
        let found = [0, 3, 4, 9, 10, 267, 268, 100_000].map(|instruction| table.position(instruction).line.unwrap());
        assert_eq!(found, [10, 10, 11, 11, 9, 9, 11, 11]);
        assert_eq!(LineTable::new(&[4, 1], 10, LineTableFormat::Unknown).position(0), Position::default());
    }

    fn location(bytes: &[u8]) -> Position {
        LineTable::new(bytes, 10, LineTableFormat::Locations).position(0)
    }

    fn at(line: u32, end_line: u32, columns: Option<(u32, u32)>) -> Position {
        let (column, end_column) = columns.unzip();
        Position { line: Some(line), end_line: Some(end_line), column, end_column }
    }

    #[test]
    fn every_form_of_location_is_decoded() {
        assert_eq!(location(&[0x80 | (3 << 3), 0x52]), at(10, 10, Some((29, 31))));
        assert_eq!(location(&[0x80 | (12 << 3), 7, 200]), at(12, 12, Some((7, 200))));
        assert_eq!(location(&[0x80 | (13 << 3), 3]), at(9, 9, None));
        assert_eq!(location(&[0x80 | (14 << 3), 4, 2, 1, 0x41, 1]), at(12, 14, Some((0, 64))));
        assert_eq!(location(&[0x80 | (14 << 3), 4, 2, 0, 0]), at(12, 14, None));
        assert_eq!(location(&[0x80 | (15 << 3)]), Position::default());
    }

    #[test]
    fn any_bytes_decode_to_ordered_ranges() {
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.below(40)).map(|_| random.bits().to_le_bytes()[0]).collect();
            for format in [LineTableFormat::Lines, LineTableFormat::Locations] {
                for first_line in [0, 1, -1, i32::MAX, i32::MIN] {
                    let table = LineTable::new(&bytes, first_line, format);
                    let mut end = 0;
                    for range in table.ranges() {
                        assert!(range.start == end && range.end >= end);
                        end = range.end;
                    }
                    assert_eq!(table.position(end), Position::default());
                }
            }
        }
    }
}
