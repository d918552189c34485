//! Records memory for a host.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stackweave_memory::{MemoryError, MemoryRecorder};
use stackweave_recording::Recorder;

use crate::boundary::{CallError, call};
use crate::host_recording::has_sink;
use crate::memory_options::stackweave_memory_options;
use crate::process_resolver::ProcessNames;
use crate::sized_struct::{self, SizedStruct};
use crate::status::stackweave_status::{self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_NO_RECORDING};

/// The amount of memory that was used. Set `size` before the call.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct stackweave_memory_usage {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// The number of allocations.
    pub allocations: u64,
    /// The bytes of all allocations.
    pub bytes: u64,
    /// The number of blocks that are not freed.
    pub live_blocks: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// The number of blocks that were live at the peak.
    pub peak_blocks: u64,
    /// Their bytes.
    pub peak_bytes: u64,
    /// The number of frees of known blocks.
    pub frees: u64,
    /// The number of frees of blocks whose allocation was not recorded.
    pub unknown_frees: u64,
}

// SAFETY: the structure has only numbers, and the size comes first.
unsafe impl SizedStruct for stackweave_memory_usage {
    const MIN_SIZE: usize = size_of::<Self>();
}

struct StartedRecorder {
    memory: MemoryRecorder,
    recorder: Recorder,
}

static ACTIVE: Mutex<Option<StartedRecorder>> = Mutex::new(None);

fn active() -> MutexGuard<'static, Option<StartedRecorder>> {
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the error of a call that needs an active recording.
fn no_recording() -> CallError {
    CallError::new(STACKWEAVE_NO_RECORDING, "memory is not being recorded by stackweave_memory_start")
}

/// Starts to record every allocation of the process to a file: malloc and related functions, mappings, and the blocks that
/// the host records with stackweave_record_allocate, each with its woven stack. Null `options` record the history of all
/// memory. Only one recording can be active. Returns STACKWEAVE_BUSY also while another copy of Stackweave in this process
/// records; that copy receives the host's events.
///
/// The file is read by the stackweave command (`stackweave heap`, `stackweave export`) and by the Python package. A process
/// that exits without calling stackweave_memory_stop completes the file at exit.
///
/// # Safety
/// `path` is null or a C string; `options` is null, or points to options whose size is correct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_memory_start(
    path: *const c_char,
    options: *const stackweave_memory_options,
) -> stackweave_status {
    call(|| {
        if path.is_null() {
            return Err(CallError::null("path"));
        }
        let options = if options.is_null() {
            stackweave_memory_options::default()
        } else {
            let bad = || CallError::new(STACKWEAVE_BAD_ARGUMENT, "the size of the options is wrong");
            // SAFETY: guaranteed by the caller.
            unsafe { sized_struct::read(options) }.ok_or_else(bad)?
        };
        // SAFETY: the caller guarantees a C string.
        let path = PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
        start(path, &options)
    })
}

fn start(path: PathBuf, options: &stackweave_memory_options) -> Result<(), CallError> {
    let memory_options = options.memory()?;
    let mut active = active();
    if active.is_some() {
        return Err(CallError::new(STACKWEAVE_BUSY, MemoryError::AlreadyRecording.to_string()));
    }
    if has_sink() {
        return Err(CallError::new(STACKWEAVE_BUSY, "another copy of Stackweave in this process records memory"));
    }
    let failed = |message: String| CallError::new(STACKWEAVE_NO_RECORDING, message);
    let options = options.recording(path, &memory_options);
    let observer = MemoryRecorder::observer(&memory_options);
    let recorder =
        Recorder::start_observed(options, stackweave_capture::stacks(), Arc::new(ProcessNames), Some(observer))
            .map_err(|error| failed(error.to_string()))?;
    let memory = MemoryRecorder::start(recorder.clone(), memory_options).map_err(|error| failed(error.to_string()))?;
    *active = Some(StartedRecorder { memory, recorder });
    Ok(())
}

/// Stops recording, and completes the file. Returns STACKWEAVE_NO_RECORDING if there is no recording, or if the file could
/// not be written completely; the last error gives the reason.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_memory_stop() -> stackweave_status {
    call(|| {
        let StartedRecorder { memory, recorder } = active().take().ok_or_else(no_recording)?;
        memory.stop();
        let summary = recorder.stop();
        summary.error.map_or(Ok(()), |error| Err(CallError::new(STACKWEAVE_NO_RECORDING, error)))
    })
}

/// Stops recording allocations until stackweave_memory_resume. Frees are still recorded, so that the live memory stays
/// correct.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_memory_pause() -> stackweave_status {
    call(|| active().as_ref().map(|active| active.memory.pause()).ok_or_else(no_recording))
}

/// Records allocations again after stackweave_memory_pause.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_memory_resume() -> stackweave_status {
    call(|| active().as_ref().map(|active| active.memory.resume()).ok_or_else(no_recording))
}

/// Writes a snapshot of the live memory and of the memory at the peak, by stack, to the file. A reader finds it even if the
/// process is killed. stackweave_memory_stop always writes a snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_memory_write_snapshot() -> stackweave_status {
    call(|| {
        let is_written = active().as_ref().map(|active| active.memory.write_snapshot()).ok_or_else(no_recording)?;
        is_written.then_some(()).ok_or_else(|| CallError::new(STACKWEAVE_NO_RECORDING, "the recording has ended"))
    })
}

/// Writes how much memory of a device is in use and was in use at the peak. Device -1 is the process's own memory. The
/// figures of a device without events are 0. Waits for the writer of the recording.
///
/// # Safety
/// `usage` is null, or points to a structure whose size is correct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_memory_get_usage(
    device: i64,
    usage: *mut stackweave_memory_usage,
) -> stackweave_status {
    call(|| {
        let snapshot = active().as_ref().map(|active| active.memory.snapshot()).ok_or_else(no_recording)?;
        let ended = || CallError::new(STACKWEAVE_NO_RECORDING, "the recording no longer keeps figures");
        let snapshot = snapshot.ok_or_else(ended)?;
        let totals = snapshot.devices.iter().find(|known| known.device == device).map(|known| known.totals);
        let totals = totals.unwrap_or_default();
        let figures = totals.figures;
        let result = stackweave_memory_usage {
            size: 0,
            allocations: figures.allocations,
            bytes: figures.bytes,
            live_blocks: figures.live_blocks,
            live_bytes: figures.live_bytes,
            peak_blocks: figures.peak_blocks,
            peak_bytes: figures.peak_bytes,
            frees: totals.frees,
            unknown_frees: totals.unknown_frees,
        };
        let bad = || CallError::new(STACKWEAVE_BAD_ARGUMENT, "usage is null or its size is not set");
        // SAFETY: guaranteed by the caller.
        unsafe { sized_struct::write(usage, &result) }.then_some(()).ok_or_else(bad)
    })
}

/// Starts the recording of a forked child that does not exec. Its file is beside the parent's, with the child's process id
/// in its name. A child records nothing before this call. Call it on the thread that forked, where the child may allocate.
/// Do not call it if another thread was in one of the stackweave_memory functions at the fork.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_memory_start_in_child() -> stackweave_status {
    call(|| active().as_ref().map(|active| active.memory.begin_in_child()).ok_or_else(no_recording))
}
