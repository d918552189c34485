//! Ctrl-C in a command that reads a recording: ends it at once, as the signal would, without a half-written file or a
//! bar.

use std::fs;
use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use stackweave_files::output::discard_unfinished;

static WATCHED: Once = Once::new();
static HAS_BAR: AtomicBool = AtomicBool::new(false);

/// Starts a thread that handles the signals from now on.
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

/// Returns the signals that the parent process set to be ignored, one bit each.
pub(crate) fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn clean_up() {
    discard_unfinished();
    if HAS_BAR.load(Ordering::Relaxed) {
        let _ = io::stderr().write_all(b"\r\x1b[K");
    }
}

/// Records whether a progress bar is on the terminal.
pub(crate) fn has_bar(has: bool) {
    HAS_BAR.store(has, Ordering::Relaxed);
}
