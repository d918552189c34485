//! Columns that grow with the number of events and are written one after another at the end. Each has a small buffer in
//! memory; the rest of its text is in a file without a name.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use stackweave_files::output::unnamed_scratch;

use crate::budget::Budget;

/// The size of a column's buffer in memory.
const BUFFER_SIZE: usize = 8 << 10;

/// The file that the columns of one export share. It is created when it is first needed.
#[derive(Clone, Debug)]
pub(crate) struct Spill(Rc<RefCell<SpillFile>>);

#[derive(Debug)]
struct SpillFile {
    file: Option<File>,
    end: u64,
    budget: Budget,
}

/// Values as text, separated by commas.
#[derive(Debug)]
pub(crate) struct SpilledColumn {
    spill: Spill,
    buffer: Vec<u8>,
    /// The position and length of each part of the earlier text in the file.
    parts: Vec<(u64, usize)>,
    pub(crate) count: u64,
}

impl Spill {
    /// Prepares a file for columns that will be written with this budget; the file is limited by the same size.
    pub(crate) fn new(budget: &Budget) -> Self {
        Self(Rc::new(RefCell::new(SpillFile { file: None, end: 0, budget: budget.for_temporary_file() })))
    }

    pub(crate) fn column(&self) -> SpilledColumn {
        SpilledColumn { spill: self.clone(), buffer: Vec::new(), parts: Vec::new(), count: 0 }
    }

    fn write(&self, text: &[u8]) -> io::Result<u64> {
        let mut spill = self.0.borrow_mut();
        spill.budget.take(text.len())?;
        if spill.file.is_none() {
            spill.file = Some(unnamed_scratch()?);
        }
        let at = spill.end;
        if let Some(file) = &spill.file {
            file.write_all_at(text, at)?;
        }
        spill.end += text.len() as u64;
        Ok(at)
    }

    fn read(&self, at: u64, text: &mut [u8]) -> io::Result<()> {
        self.0.borrow().file.as_ref().map_or(Ok(()), |file| file.read_exact_at(text, at))
    }
}

impl SpilledColumn {
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        if self.count > 0 {
            self.buffer.push(b',');
        }
        write(&mut self.buffer);
        self.count += 1;
        if self.buffer.len() >= BUFFER_SIZE {
            self.parts.push((self.spill.write(&self.buffer)?, self.buffer.len()));
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes all values, in brackets.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"[")?;
        let mut part = Vec::new();
        for (at, len) in &self.parts {
            part.resize(*len, 0);
            self.spill.read(*at, &mut part)?;
            out.write_all(&part)?;
        }
        out.write_all(&self.buffer)?;
        out.write_all(b"]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_back_completely_and_separately() {
        let spill = Spill::new(&Budget::new(None, None));
        let mut columns = [spill.column(), spill.column(), spill.column()];
        for number in 0..20_000_u32 {
            for (index, column) in columns.iter_mut().take(2).enumerate() {
                column.push(|text| text.extend(format!("{number}{index}").bytes())).unwrap();
            }
        }
        assert!(columns.iter().all(|column| column.buffer.len() < BUFFER_SIZE));
        for (index, column) in columns.iter().enumerate() {
            let mut text = Vec::new();
            column.write(&mut text).unwrap();
            let values: Vec<String> = (0..column.count).map(|number| format!("{number}{index}")).collect();
            assert_eq!(String::from_utf8(text).unwrap(), format!("[{}]", values.join(",")));
        }
        assert_eq!(columns[2].count, 0);
    }
}
