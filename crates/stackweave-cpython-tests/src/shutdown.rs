//! Walks after the interpreter has ended, and in threads that it leaves behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stackweave_cpython::{Interpreter, PythonFrame};

use crate::sources::{self, CheckedStack, REPLAYING};

fn report(what: &str) {
    let line = match Interpreter::find() {
        Ok(interpreter) => {
            let walked = interpreter.walk(&mut [PythonFrame::default(); 64]);
            format!("{what}: {} frames, {}\n", walked.len, walked.stop)
        }
        Err(reason) => format!("{what}: {reason}\n"),
    };
    // SAFETY: the buffer is as long as the call says.
    unsafe { libc::write(1, line.as_ptr().cast(), line.len()) };
}

/// Reports that the interpreter has been finalised. `Py_AtExit` registers it.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_report_at_exit() {
    STOP.store(true, Ordering::Release);
    report("at exit");
}

static STOP: AtomicBool = AtomicBool::new(false);

/// Walks until the interpreter has ended, and a little longer. A daemon thread calls it without the GIL.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_walk_through_shutdown() {
    let interpreter = Interpreter::find().expect("it is supported");
    let mut frames = [PythonFrame::default(); 64];
    let mut stack = CheckedStack::with_capacity(64);
    while !STOP.load(Ordering::Acquire) {
        interpreter.walk(&mut frames);
        sources::walk(REPLAYING, &mut stack);
    }
    report("daemon");
    std::thread::sleep(Duration::from_secs(1));
}
