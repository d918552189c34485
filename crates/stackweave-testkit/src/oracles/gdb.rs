//! gdb in batch mode.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::child;

/// Prints the program counter of every frame each time the marker is reached, innermost first. Skips frames that
/// gdb derives from debug information, for inlined and for tail calls: they are on no stack.
const SCRIPT: &str = r#"python
import gdb
def show(event):
    if not isinstance(event, gdb.BreakpointEvent):
        return
    print("stack")
    frame = gdb.newest_frame()
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            print("pc", hex(frame.pc()))
        frame = frame.older()
    print("end", flush=True)
gdb.events.stop.connect(show)
end
"#;

/// Returns whether gdb with Python support is installed.
pub fn is_installed() -> bool {
    Command::new("gdb").args(["-nx", "-batch", "-ex", "python 1"]).output().is_ok_and(|output| output.status.success())
}

/// Runs a test of `executable` in `role` under gdb, which records the stack each time `marker` is called: program
/// counters, the marker's first. Also returns the output of the program and gdb.
///
/// # Panics
/// When the script cannot be written or gdb cannot be started.
pub fn stacks_at(marker: &str, executable: &Path, name: &str, role: &str, stops: usize) -> (Vec<Vec<u64>>, String) {
    let script = std::env::temp_dir().join(format!("stackweave-gdb-{}.gdb", std::process::id()));
    let mut text = String::from(
        "set debuginfod enabled off\nset auto-load off\nset pagination off\nset confirm off\nset startup-with-shell off\n\
         set backtrace past-main on\nset backtrace past-entry on\nhandle SIGUSR1 nostop noprint pass\n",
    );
    text.push_str(SCRIPT);
    let _ = write!(text, "set environment {}\nbreak {marker}\nrun\n", child::environment(role));
    text.push_str(&"continue\n".repeat(stops));
    std::fs::write(&script, text).expect("the temporary directory can be written");
    let mut command = Command::new("gdb");
    command.args(["-nx", "-q", "-batch", "-x"]).arg(&script).arg("--args").arg(executable);
    let output = child::run(command.args(child::arguments(name)));
    let _ = std::fs::remove_file(&script);
    let text = child::text(&output);
    (parse(&text), text)
}

fn parse(text: &str) -> Vec<Vec<u64>> {
    let mut stacks: Vec<Vec<u64>> = Vec::new();
    for line in text.lines() {
        if line == "stack" {
            stacks.push(Vec::new());
        } else if let (Some(stack), Some(pc)) = (stacks.last_mut(), line.strip_prefix("pc 0x")) {
            stack.extend(u64::from_str_radix(pc, 16));
        }
    }
    stacks
}
