//! The line tables of a whole standard library, compared with the positions that its own interpreter reports.

use std::path::Path;
use std::process::Command;

use stackweave_cpython::{LineTable, LineTableFormat, Position};
use stackweave_cpython_tests::pythons::{Python, script};
use stackweave_testkit::{child, in_each_python};

const SECONDS: u32 = 300;
const FIRST_WITH_COLUMNS: u8 = 11;

/// Reads what the script wrote: little-endian words of 32 bits, and bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn number(&mut self) -> i32 {
        i32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn length(&mut self) -> usize {
        usize::try_from(self.number()).unwrap()
    }

    /// Reads a number of a position. Minus one means none.
    fn optional(&mut self) -> Option<u32> {
        u32::try_from(self.number()).ok()
    }
}

fn dump(python: &Python, file: &Path) -> Vec<u8> {
    let mut command = Command::new(&python.executable);
    command.arg("-B").arg(script("dump_line_tables.py")).arg(file);
    let output = child::run_for(&mut command, SECONDS);
    assert!(output.status.success(), "{}: {}", python.version, child::text(&output));
    let bytes = std::fs::read(file).expect("the script wrote it");
    std::fs::remove_file(file).expect("the test owns it");
    bytes
}

/// Compares every code object. Returns how many code objects and instructions there were.
fn compare(python: &Python, bytes: &[u8]) -> (usize, u32) {
    let columns = python.minor >= FIRST_WITH_COLUMNS;
    let format = if columns { LineTableFormat::Locations } else { LineTableFormat::Lines };
    let mut reader = Reader(bytes);
    let (mut codes, mut instructions) = (0, 0);
    while !reader.0.is_empty() {
        let first_line = reader.number();
        let length = reader.length();
        let table = LineTable::new(reader.take(length), first_line, format);
        let mut ranges = table.ranges().filter(|range| range.end > range.start).peekable();
        let (mut start, mut last) = (0, (0, Position::default()));
        for _ in 0..reader.length() {
            let end = reader.optional().unwrap();
            let [line, end_line, column, end_column] = [(); 4].map(|()| reader.optional());
            let expected = Position { line, end_line, column, end_column };
            for instruction in (start..end).step_by(2) {
                while ranges.next_if(|range| range.end <= instruction).is_some() {}
                let found = ranges.peek().map_or_else(Position::default, |range| range.position);
                let found = if columns { found } else { Position { end_line: None, ..found } };
                assert_eq!(found, expected, "{}: {table:?} at {instruction}", python.version);
                instructions += 1;
            }
            last = (start, expected);
            start = end;
        }
        assert_eq!(table.position(last.0).line, last.1.line, "{}: {table:?}", python.version);
        codes += 1;
    }
    (codes, instructions)
}

in_each_python!(every_instruction_of_the_standard_library_has_its_position, check_positions);

fn check_positions(python: &Python) {
    let file = std::env::temp_dir().join(format!("stackweave-lines-{}-{}", python.version, std::process::id()));
    let (codes, instructions) = compare(python, &dump(python, &file));
    println!("{}: {codes} code objects, {instructions} instructions", python.version);
    assert!(codes > 5_000, "{}: only {codes} code objects", python.version);
}
