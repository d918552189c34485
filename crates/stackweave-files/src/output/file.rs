//! An output that consists of one file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::draft::{Draft, OpenedOutput};
use super::unfinished::UnfinishedFiles;
use super::{Created, Existing};

const BUFFER: usize = 1 << 18;

/// A file that exists only when it is complete. Output to a device, a FIFO or a socket is written immediately.
///
/// If it is dropped before [`OutputFile::finish`], nothing remains of it, and an old file is unchanged.
#[derive(Debug)]
pub struct OutputFile {
    out: BufWriter<File>,
    /// `None` for a stream.
    draft: Option<(Draft, Option<UnfinishedFiles>)>,
    bytes: u64,
}

impl OutputFile {
    /// Opens an output. Only the owner can access a new file.
    pub fn create(path: &Path, existing: Existing) -> io::Result<Self> {
        Ok(match Draft::open(path, existing)? {
            OpenedOutput::Stream(stream) => Self::stream(stream),
            OpenedOutput::Draft(file, draft) => {
                let unfinished = draft.temporary().map(|temporary| {
                    let unfinished = UnfinishedFiles::new();
                    unfinished.add(temporary.clone());
                    unfinished
                });
                Self { draft: Some((draft, unfinished)), ..Self::stream(file) }
            }
        })
    }

    fn stream(file: File) -> Self {
        Self { out: BufWriter::with_capacity(BUFFER, file), draft: None, bytes: 0 }
    }

    /// Syncs the file to the disk, and names it. Returns its size, and the proof that it was created here, unless
    /// it is a stream.
    pub fn finish(mut self) -> io::Result<(u64, Option<Created>)> {
        self.out.flush()?;
        let file = self.out.get_ref();
        let Some((draft, _unfinished)) = &mut self.draft else { return Ok((self.bytes, None)) };
        file.sync_all()?;
        let published = draft.publish(file)?;
        Ok((self.bytes, Some(published.created)))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes a complete file, or nothing. Returns its size.
pub fn write_file<E: From<io::Error>>(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<u64, E> {
    let mut output = OutputFile::create(path, existing)?;
    write(&mut output)?;
    Ok(output.finish()?.0)
}
