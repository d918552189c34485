//! Walks while another thread holds the GIL.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stackweave_cpython::{Interpreter, PythonFrame};

static HELD: AtomicBool = AtomicBool::new(false);
static WALKED: AtomicBool = AtomicBool::new(false);
const PATIENCE: Duration = Duration::from_secs(20);

fn wait_for(flag: &AtomicBool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !flag.load(Ordering::Acquire) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Keeps the GIL until the other thread has walked. Returns whether that happened.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_hold_gil() -> bool {
    HELD.store(true, Ordering::Release);
    wait_for(&WALKED)
}

/// Walks while the other thread holds the GIL. Returns the length of the stack. The caller does not hold the GIL.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_walk_while_held() -> usize {
    let mut frames = [PythonFrame::default(); 64];
    let interpreter = Interpreter::find().expect("it is supported");
    if !wait_for(&HELD) {
        return 0;
    }
    let first = interpreter.walk(&mut frames);
    let same = (0..10_000).all(|_| interpreter.walk(&mut frames) == first);
    WALKED.store(true, Ordering::Release);
    if same { first.len } else { 0 }
}
