//! The memory of another process.

use std::ffi::c_void;

/// Reads mapped memory through the kernel. Missing permission, a missing page and an ended process all return
/// `None`.
#[derive(Clone, Copy, Debug)]
pub struct RemoteMemory {
    process: i32,
}

impl RemoteMemory {
    /// Returns the memory of the process with this id.
    pub fn of(process: u32) -> Self {
        Self { process: process.cast_signed() }
    }

    /// Returns whether the system allows reading it, as far as is known without reading.
    pub(crate) fn may_be_read(self) -> bool {
        // The kernel checks the permission first, and then finds that nothing is mapped there.
        self.read(0, &mut [0]).is_some() || std::io::Error::last_os_error().raw_os_error() != Some(libc::EPERM)
    }

    /// Fills `into` with the memory at `address`: all of it, or nothing.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec {
            iov_base: std::ptr::with_exposed_provenance_mut::<c_void>(usize::try_from(address).ok()?),
            iov_len: into.len(),
        };
        // SAFETY: the kernel writes only to `into`, and checks the remote address itself.
        let copied = unsafe { libc::process_vm_readv(self.process, &raw const local, 1, &raw const remote, 1, 0) };
        (usize::try_from(copied) == Ok(into.len())).then_some(())
    }

    /// Returns the word at `address`.
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Some(u64::from_le_bytes(bytes))
    }
}
