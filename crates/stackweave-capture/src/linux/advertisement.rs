//! Advertises that this process replies to stack queries: an untouched page whose name is in `/proc/PID/maps`.
//!
//! Processes that may read that file may query. A forked child inherits the page, and replies too; `exec` removes
//! the page and the handler.

use core::ffi::c_int;
use core::ptr;
use std::sync::{Mutex, PoisonError};

use crate::dump::DumpError;
use crate::platform::raw_files::{Path, last_error};
use crate::stack_query::SIGNAL_MAPPING_PREFIX;

const PAGE: usize = 4096;

/// The page, and the signal in its name.
static ADVERTISED: Mutex<Option<Page>> = Mutex::new(None);

#[derive(Debug)]
struct Page {
    address: usize,
    signal: c_int,
}

/// Advertises the signal, instead of a previous one.
pub(crate) fn advertise(signal: c_int) -> Result<(), DumpError> {
    let mut advertised = ADVERTISED.lock().unwrap_or_else(PoisonError::into_inner);
    if advertised.as_ref().is_some_and(|page| page.signal == signal) {
        return Ok(());
    }
    *advertised = None;
    *advertised = Some(Page::map(signal)?);
    Ok(())
}

/// Advertises the new signal, if an old one is advertised.
pub(crate) fn renew(signal: c_int) {
    let is_advertised = ADVERTISED.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    if is_advertised {
        let _ = advertise(signal);
    }
}

impl Page {
    fn map(signal: c_int) -> Result<Self, DumpError> {
        let name = Path::new(format_args!("{SIGNAL_MAPPING_PREFIX}{signal}"));
        let name = name.as_ref().and_then(Path::as_c_str).ok_or(DumpError::NotAdvertised(libc::ENAMETOOLONG))?;
        // SAFETY: the name ends with a zero byte.
        let made = |flags| unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | flags) };
        // Kernels before 6.3 do not know the flag, and some later ones create no memory files without it.
        let fd = [libc::MFD_NOEXEC_SEAL, 0].into_iter().map(made).find(|fd| *fd >= 0);
        let fd = fd.ok_or_else(|| DumpError::NotAdvertised(last_error()))?;
        // SAFETY: a new, inaccessible mapping, and a descriptor that this function owns.
        let address = unsafe {
            let address = libc::mmap(ptr::null_mut(), PAGE, libc::PROT_NONE, libc::MAP_SHARED, fd, 0);
            libc::close(fd);
            address
        };
        if address == libc::MAP_FAILED {
            return Err(DumpError::NotAdvertised(last_error()));
        }
        Ok(Self { address: address.expose_provenance(), signal })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and no other code has the address.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(self.address), PAGE) };
    }
}
