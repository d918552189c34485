//! Recording memory for a host.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stackweave_memory::{Memory, MemoryError};
use stackweave_recording::Recorder;

use crate::border::{Fault, call};
use crate::growing::{self, Growing};
use crate::memory_block::has_sink;
use crate::memory_options::stackweave_memory_options;
use crate::process_resolver::ThisProcess;
use crate::status::stackweave_status::{self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_NO_RECORDING};

/// How much memory was used. Set `size` before asking.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct stackweave_memory_usage {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// How often memory was taken.
    pub allocations: u64,
    /// The bytes of all that was taken.
    pub bytes: u64,
    /// Blocks that are not given back.
    pub live_blocks: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// Blocks that were live when most bytes were.
    pub peak_blocks: u64,
    /// Their bytes.
    pub peak_bytes: u64,
    /// Blocks that were given back.
    pub frees: u64,
    /// Frees of what was not seen to be taken.
    pub unknown_frees: u64,
}

// SAFETY: numbers, the size first.
unsafe impl Growing for stackweave_memory_usage {
    const FIRST: usize = size_of::<Self>();
}

struct Running {
    memory: Memory,
    recorder: Recorder,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

fn running() -> MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is asked of a recording that there is not.
fn none() -> Fault {
    Fault::new(STACKWEAVE_NO_RECORDING, "memory is not being recorded by stackweave_memory_start")
}

/// Begins to record every allocation of the process to a file: malloc and its kin, mappings, and what the host tells by
/// stackweave_alloc, each with its woven stack. `options`: null for the history of everything. One recording at a time;
/// STACKWEAVE_BUSY also while another copy of Stackweave in this process records, which gets what the host tells.
///
/// The file is read by the stackweave command (`stackweave heap`, `stackweave export`) and by the Python package. If the
/// process ends without stackweave_memory_stop, the file is ended then.
///
/// # Safety
/// `path` is null or a C string; `options` is null, or points to options with a true size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_memory_start(
    path: *const c_char,
    options: *const stackweave_memory_options,
) -> stackweave_status {
    call(|| {
        if path.is_null() {
            return Err(Fault::null("path"));
        }
        let asked = if options.is_null() {
            stackweave_memory_options::default()
        } else {
            let bad = || Fault::new(STACKWEAVE_BAD_ARGUMENT, "the options have a size that is not known");
            // SAFETY: the caller vouches for them.
            unsafe { growing::read(options) }.ok_or_else(bad)?
        };
        // SAFETY: the caller vouches for the string.
        let path = PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
        start(path, &asked)
    })
}

fn start(path: PathBuf, asked: &stackweave_memory_options) -> Result<(), Fault> {
    let memory_options = asked.memory()?;
    let mut running = running();
    if running.is_some() {
        return Err(Fault::new(STACKWEAVE_BUSY, MemoryError::AlreadyRecording.to_string()));
    }
    if has_sink() {
        return Err(Fault::new(STACKWEAVE_BUSY, "another copy of Stackweave in this process records memory"));
    }
    let refused = |text: String| Fault::new(STACKWEAVE_NO_RECORDING, text);
    let options = asked.recording(path, &memory_options);
    let observer = Memory::observer(&memory_options);
    let recorder =
        Recorder::start_observed(options, stackweave_capture::stacks(), Arc::new(ThisProcess), Some(observer))
            .map_err(|error| refused(error.to_string()))?;
    let memory = Memory::start(recorder.clone(), memory_options).map_err(|error| refused(error.to_string()))?;
    *running = Some(Running { memory, recorder });
    Ok(())
}

/// Records no more, and ends the file. STACKWEAVE_NO_RECORDING if there is no recording, or if not all of it could be
/// written; the last error says why.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_memory_stop() -> stackweave_status {
    call(|| {
        let Running { memory, recorder } = running().take().ok_or_else(none)?;
        memory.stop();
        let summary = recorder.stop();
        summary.error.map_or(Ok(()), |error| Err(Fault::new(STACKWEAVE_NO_RECORDING, error)))
    })
}

/// Leaves out what is allocated until stackweave_memory_resume. What is given back meanwhile is still recorded, so that what is
/// live stays right.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_memory_pause() -> stackweave_status {
    call(|| running().as_ref().map(|running| running.memory.pause()).ok_or_else(none))
}

/// Goes on after stackweave_memory_pause.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_memory_resume() -> stackweave_status {
    call(|| running().as_ref().map(|running| running.memory.resume()).ok_or_else(none))
}

/// Writes what is live now, and was at the peak, by stack into the file: what a reader finds if the process is killed. A
/// recording that is stopped ends with one anyway.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_memory_snapshot() -> stackweave_status {
    call(|| {
        let is_written = running().as_ref().map(|running| running.memory.write_snapshot()).ok_or_else(none)?;
        is_written.then_some(()).ok_or_else(|| Fault::new(STACKWEAVE_NO_RECORDING, "the recording has ended"))
    })
}

/// How much memory of a device was used, by now and at its peak; device -1 is the process's own memory. Of one that nobody
/// has told of, nothing. Waits for the recording's writer.
///
/// # Safety
/// `usage` is null, or points to the structure with its true size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_memory_get_usage(
    device: i64,
    usage: *mut stackweave_memory_usage,
) -> stackweave_status {
    call(|| {
        let asked = running().as_ref().map(|running| running.memory.snapshot()).ok_or_else(none)?;
        let failed = || Fault::new(STACKWEAVE_NO_RECORDING, "the recording keeps no figures any more");
        let snapshot = asked.ok_or_else(failed)?;
        let totals = snapshot.devices.iter().find(|known| known.device == device).map(|known| known.totals);
        let totals = totals.unwrap_or_default();
        let of = totals.figures;
        let answer = stackweave_memory_usage {
            size: 0,
            allocations: of.allocations,
            bytes: of.bytes,
            live_blocks: of.live_blocks,
            live_bytes: of.live_bytes,
            peak_blocks: of.peak_blocks,
            peak_bytes: of.peak_bytes,
            frees: totals.frees,
            unknown_frees: totals.unknown_frees,
        };
        let bad = || Fault::new(STACKWEAVE_BAD_ARGUMENT, "usage is null or its size is not set");
        // SAFETY: the caller vouches for it.
        unsafe { growing::write(usage, &answer) }.then_some(()).ok_or_else(bad)
    })
}

/// In a forked child that goes on without another program: its own recording begins, in a file beside its parent's that has the
/// child's number in its name. Until this is called a child records nothing. To be called on the thread that forked, where
/// the child may allocate; not if another thread was in one of these calls at the fork.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_memory_forked() -> stackweave_status {
    call(|| running().as_ref().map(|running| running.memory.begin_in_child()).ok_or_else(none))
}
