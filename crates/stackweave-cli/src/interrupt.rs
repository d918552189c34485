//! Ctrl-C in a command that reads: it ends at once, as by the signal, and leaves neither a half-written file nor a bar.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

static WATCHED: Once = Once::new();
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);
static HAS_BAR: AtomicBool = AtomicBool::new(false);

/// Watches from here on, in a thread of its own.
pub(crate) fn watch() {
    WATCHED.call_once(|| {
        let ignored = ignored();
        let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
        let Ok(mut signals) = Signals::new(wanted) else { return };
        std::thread::spawn(move || {
            for signal in signals.forever() {
                clean_up();
                let _ = emulate_default_handler(signal);
            }
        });
    });
}

/// The signals that are to be ignored, as who started this process wants it: a bit each.
pub(crate) fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn clean_up() {
    let unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(path) = unfinished {
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
    if HAS_BAR.load(Ordering::Relaxed) {
        let _ = io::stderr().write_all(b"\r\x1b[K");
    }
}

/// A bar is drawn, or is gone again.
pub(crate) fn has_bar(has: bool) {
    HAS_BAR.store(has, Ordering::Relaxed);
}

/// A file, or a folder, that is being written: under the name that exports and merges give it until it is whole.
#[derive(Debug)]
pub(crate) struct Writing;

impl Writing {
    pub(crate) fn new(output: &Path) -> Self {
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        let hidden = output.with_file_name(format!(".{name}.{}.part", process::id()));
        *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) = Some(hidden);
        watch();
        Self
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
