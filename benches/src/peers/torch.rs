//! The function `torch::unwind::unwind()`, from the torch that Python would import.

use std::env;
use std::ffi::{CString, c_void};
use std::mem;
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;

use super::{CaptureFn, Unwinder, shared_library};

pub(super) const NAME: &str = "torch";

/// The environment variable that names the Python whose torch is measured; `python3` if it is not set.
const PYTHON: &str = "STACKWEAVE_BENCH_PYTHON";

/// A script that finds torch without importing it, because the import takes seconds.
const FIND: &str = "import importlib.metadata as m, importlib.util as u, os
print(m.version('torch')); print(os.path.join(os.path.dirname(u.find_spec('torch').origin), 'lib', 'libtorch_cpu.so'))";

/// A `std::vector<void *>` in libstdc++'s layout.
#[repr(C)]
struct Frames {
    begin: *mut *mut c_void,
    end: *mut *mut c_void,
    capacity_end: *mut *mut c_void,
}

/// The type of `unwind()`. It returns its vector through a pointer that the caller passes as a hidden first argument.
type Unwind = unsafe extern "C" fn(*mut Frames) -> *mut Frames;
type Delete = unsafe extern "C" fn(*mut c_void);

static ENTRY: OnceLock<(Unwind, Delete)> = OnceLock::new();
static FOUND: OnceLock<Option<Torch>> = OnceLock::new();

#[derive(Debug)]
struct Torch {
    version: String,
    /// The path of the library that holds most of torch.
    library: String,
}

pub(super) fn load() -> Unwinder {
    Unwinder {
        name: NAME,
        version: || {
            let version = found().map_or("unknown", |torch| torch.version.as_str());
            format!("{version}, torch::unwind::unwind()")
        },
        capture: library().ok_or_else(|| "not installed".to_owned()).and_then(install),
        needs_frame_pointers: false,
        remembers_addresses: true,
    }
}

/// Returns the Python that is used for torch.
pub(crate) fn python() -> String {
    env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned())
}

/// Returns the path of torch's big library, if torch is installed.
pub(crate) fn library() -> Option<&'static str> {
    found().map(|torch| torch.library.as_str())
}

fn found() -> Option<&'static Torch> {
    FOUND.get_or_init(find).as_ref()
}

fn find() -> Option<Torch> {
    let output = Command::new(python()).args(["-c", FIND]).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines().map(str::to_owned);
    Some(Torch { version: lines.next()?, library: lines.next()? })
}

fn install(library: &str) -> Result<CaptureFn, String> {
    let path = CString::new(library).map_err(|_| "not loadable: its path contains a null byte".to_owned())?;
    let library = shared_library::open(&path).map_err(|why| format!("not loadable: {why}"))?;
    let unwind = library.symbol(c"_ZN5torch6unwind6unwindEv").map_err(|why| format!("no such function: {why}"))?;
    let delete = library.symbol(c"_ZdlPv").map_err(|why| format!("no such function: {why}"))?;
    // SAFETY: the mangled name fixes the arguments, and `Unwind` describes how the vector is returned.
    let unwind = unsafe { mem::transmute::<*const c_void, Unwind>(unwind) };
    // SAFETY: `_ZdlPv` is `operator delete(void *)`.
    let delete = unsafe { mem::transmute::<*const c_void, Delete>(delete) };
    ENTRY.get_or_init(|| (unwind, delete));
    Ok(capture)
}

/// Captures with torch. The copy into the caller's buffer costs about 1 % of the capture itself.
unsafe extern "C" fn capture(buffer: *mut *mut c_void, max: usize) -> usize {
    let Some((unwind, delete)) = ENTRY.get() else { return 0 };
    let mut frames = Frames { begin: ptr::null_mut(), end: ptr::null_mut(), capacity_end: ptr::null_mut() };
    // SAFETY: `frames` has the size of the vector that the function constructs there.
    unsafe { unwind(&raw mut frames) };
    let length = (frames.end.addr() - frames.begin.addr()) / size_of::<*mut c_void>();
    let count = length.min(max);
    if count > 0 {
        // SAFETY: the vector holds `length` words, the caller's buffer `max`, and they don't overlap.
        unsafe { ptr::copy_nonoverlapping(frames.begin, buffer, count) };
    }
    // SAFETY: the vector's storage came from the matching `operator new`, and is not used again.
    unsafe { delete(frames.begin.cast()) };
    count
}
