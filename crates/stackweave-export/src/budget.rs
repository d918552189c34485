//! The writer around every export: it counts bytes, and fails beyond the limit or if the disk gets too full.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// This many bytes stay free on a disk: a full disk harms other programs.
const RESERVE: u64 = 128 << 20;
/// The free space is queried each time after this many bytes. Smaller exports are written to any disk.
const STEP: u64 = 8 << 20;

/// The bytes that may still be written. Copies share it.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<SharedBudget>);

#[derive(Debug)]
struct SharedBudget {
    limit: Option<u64>,
    written: AtomicU64,
    folder: Option<PathBuf>,
    /// Returns the free bytes of a folder's disk; `None` if unknown.
    free: fn(&Path) -> Option<u64>,
}

/// The limit was exceeded.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("more than {limit} bytes")]
pub(crate) struct LimitExceeded {
    pub(crate) limit: u64,
}

impl Budget {
    /// Creates a budget with a limit, if there is one, for files in a folder.
    pub(crate) fn new(limit: Option<u64>, folder: Option<&Path>) -> Self {
        Self::with_free(limit, folder, free_bytes)
    }

    fn with_free(limit: Option<u64>, folder: Option<&Path>, free: fn(&Path) -> Option<u64>) -> Self {
        Self(Arc::new(SharedBudget { limit, written: AtomicU64::new(0), folder: folder.map(Path::to_owned), free }))
    }

    /// Returns an unused budget of the same size for a file in the temporary folder.
    pub(crate) fn for_temporary_file(&self) -> Self {
        Self::with_free(self.0.limit, Some(&std::env::temp_dir()), self.0.free)
    }

    /// Counts bytes that will be written, and fails if they exceed the budget.
    pub(crate) fn take(&self, bytes: usize) -> io::Result<()> {
        let SharedBudget { limit, written, folder, free } = &*self.0;
        let bytes = bytes as u64;
        let before = written.fetch_add(bytes, Ordering::Relaxed);
        let after = before.saturating_add(bytes);
        if let Some(limit) = limit.filter(|limit| after > *limit) {
            return Err(io::Error::other(LimitExceeded { limit }));
        }
        if before / STEP == after / STEP {
            return Ok(());
        }
        match folder.as_deref().and_then(free) {
            Some(left) if left < RESERVE => Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!("its disk has {} MiB left, and {} MiB are kept free", left >> 20, RESERVE >> 20),
            )),
            _ => Ok(()),
        }
    }

    /// Returns a writer that counts its bytes in the budget.
    pub(crate) fn writer<W: Write>(&self, out: W) -> BudgetedWriter<W> {
        BudgetedWriter { budget: self.clone(), out }
    }
}

/// A writer with a budget.
#[derive(Debug)]
pub(crate) struct BudgetedWriter<W> {
    budget: Budget,
    out: W,
}

impl<W> BudgetedWriter<W> {
    pub(crate) fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> Write for BudgetedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.budget.take(bytes.len())?;
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(folder).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_of_a_budget_share_it() {
        let budget = Budget::new(Some(10), None);
        let (mut one, mut other) = (budget.writer(Vec::new()), budget.writer(Vec::new()));
        one.write_all(b"12345").unwrap();
        other.write_all(b"67890").unwrap();
        let error = one.write_all(b"1").unwrap_err();
        assert_eq!(error.get_ref().and_then(|inner| inner.downcast_ref::<LimitExceeded>()).unwrap().limit, 10);
        assert_eq!((one.into_inner(), other.into_inner()), (b"12345".to_vec(), b"67890".to_vec()));
        budget.for_temporary_file().take(10).unwrap();
    }

    #[test]
    fn a_reserve_stays_free_on_the_disk() {
        let little = Budget::with_free(None, Some(Path::new("/")), |_| Some(RESERVE - 1));
        let step = usize::try_from(STEP).unwrap();
        little.take(step - 1).unwrap();
        let error = little.take(1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(error.to_string(), "its disk has 127 MiB left, and 128 MiB are kept free");
        for enough in [|_: &Path| Some(RESERVE), |_: &Path| None] {
            Budget::with_free(None, Some(Path::new("/")), enough).take(10 * step).unwrap();
        }
    }

    #[test]
    fn the_free_space_of_a_folder_is_known() {
        assert!(free_bytes(&std::env::temp_dir()).is_some());
        assert_eq!(free_bytes(Path::new("/there/is/no/such/folder")), None);
    }
}
