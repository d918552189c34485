//! How a process says that it answers: a page that is never touched, whose name stands in `/proc/PID/maps`.
//!
//! Whoever may see that file may ask. A forked child has the page too, and answers; `exec` removes it, and the handler.

use core::ffi::c_int;
use core::ptr;
use std::sync::{Mutex, PoisonError};

use crate::dump::CantDump;
use crate::platform::raw_files::{Path, last_error};
use crate::question::ANSWERS;

const PAGE: usize = 4096;

/// The page, and the signal that it names.
static SHOWN: Mutex<Option<Page>> = Mutex::new(None);

#[derive(Debug)]
struct Page {
    address: usize,
    signal: c_int,
}

/// Shows the signal, in the place of another one that was shown.
pub(crate) fn show(signal: c_int) -> Result<(), CantDump> {
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if shown.as_ref().is_some_and(|page| page.signal == signal) {
        return Ok(());
    }
    *shown = None;
    *shown = Some(Page::map(signal)?);
    Ok(())
}

/// Shows the new signal, if there is something to be replaced.
pub(crate) fn renew(signal: c_int) {
    let is_shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    if is_shown {
        let _ = show(signal);
    }
}

impl Page {
    fn map(signal: c_int) -> Result<Self, CantDump> {
        let name = Path::new(format_args!("{ANSWERS}{signal}"));
        let name = name.as_ref().and_then(Path::as_c_str).ok_or(CantDump::NotShown(libc::ENAMETOOLONG))?;
        // SAFETY: a name that ends with a zero.
        let made = |flags| unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | flags) };
        // Kernels before 6.3 don't know the flag, some later ones make no files without it.
        let fd = [libc::MFD_NOEXEC_SEAL, 0].into_iter().map(made).find(|fd| *fd >= 0);
        let fd = fd.ok_or_else(|| CantDump::NotShown(last_error()))?;
        // SAFETY: a new mapping, which nobody can read or write, and a descriptor that is ours.
        let address = unsafe {
            let address = libc::mmap(ptr::null_mut(), PAGE, libc::PROT_NONE, libc::MAP_SHARED, fd, 0);
            libc::close(fd);
            address
        };
        if address == libc::MAP_FAILED {
            return Err(CantDump::NotShown(last_error()));
        }
        Ok(Self { address: address.expose_provenance(), signal })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and nobody knows the address.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(self.address), PAGE) };
    }
}
