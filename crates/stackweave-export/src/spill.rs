//! Columns that grow with the number of events, and are written one after another when all is known: what does not fit into
//! a small piece of memory lies in a file that has no name.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use stackweave_files::output::unnamed_scratch;

use crate::budget::Budget;

/// A column keeps this much in memory.
const KEPT: usize = 8 << 10;

/// The file that the columns of one export share. It is made when it is needed.
#[derive(Clone, Debug)]
pub(crate) struct Spill(Rc<RefCell<SpillFile>>);

#[derive(Debug)]
struct SpillFile {
    file: Option<File>,
    end: u64,
    budget: Budget,
}

/// Values as text, with commas between them.
#[derive(Debug)]
pub(crate) struct SpilledColumn {
    spill: Spill,
    kept: Vec<u8>,
    /// Where in the file the earlier text is, and how long each piece.
    pieces: Vec<(u64, usize)>,
    pub(crate) count: u64,
}

impl Spill {
    /// A file for columns that will be written with this budget: it grows no larger than they may.
    pub(crate) fn new(budget: &Budget) -> Self {
        Self(Rc::new(RefCell::new(SpillFile { file: None, end: 0, budget: budget.for_temporary_file() })))
    }

    pub(crate) fn column(&self) -> SpilledColumn {
        SpilledColumn { spill: self.clone(), kept: Vec::new(), pieces: Vec::new(), count: 0 }
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
            self.kept.push(b',');
        }
        write(&mut self.kept);
        self.count += 1;
        if self.kept.len() >= KEPT {
            self.pieces.push((self.spill.write(&self.kept)?, self.kept.len()));
            self.kept.clear();
        }
        Ok(())
    }

    /// Writes all values, in brackets.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"[")?;
        let mut piece = Vec::new();
        for (at, len) in &self.pieces {
            piece.resize(*len, 0);
            self.spill.read(*at, &mut piece)?;
            out.write_all(&piece)?;
        }
        out.write_all(&self.kept)?;
        out.write_all(b"]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_back_whole_and_apart() {
        let spill = Spill::new(&Budget::new(None, None));
        let mut columns = [spill.column(), spill.column(), spill.column()];
        for number in 0..20_000_u32 {
            for (index, column) in columns.iter_mut().take(2).enumerate() {
                column.push(|text| text.extend(format!("{number}{index}").bytes())).unwrap();
            }
        }
        assert!(columns.iter().all(|column| column.kept.len() < KEPT));
        for (index, column) in columns.iter().enumerate() {
            let mut text = Vec::new();
            column.write(&mut text).unwrap();
            let values: Vec<String> = (0..column.count).map(|number| format!("{number}{index}")).collect();
            assert_eq!(String::from_utf8(text).unwrap(), format!("[{}]", values.join(",")));
        }
        assert_eq!(columns[2].count, 0);
    }
}
