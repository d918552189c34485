//! The machine that the figures come from.

use std::ffi::CStr;
use std::fmt::Write;
use std::process::Command;
use std::{fs, thread};

pub(crate) fn describe() -> String {
    let mut text = String::from("Stackweave benchmarks\n");
    let _ = writeln!(text, "  date     {}", first_line_of("date", &["-u", "+%Y-%m-%d %H:%M UTC"]));
    let _ = writeln!(text, "  cpu      {}", cpu_model());
    let _ = writeln!(text, "  cores    {}, load {}", thread::available_parallelism().map_or(1, usize::from), load());
    let _ = writeln!(text, "  kernel   {}", read_line("/proc/sys/kernel/osrelease"));
    let _ = writeln!(text, "  glibc    {}", glibc_version());
    let _ = writeln!(text, "  rustc    {}", first_line_of("rustc", &["--version"]));
    let _ = writeln!(text, "  cc       {}", first_line_of("cc", &["--version"]));
    text
}

pub(crate) fn glibc_version() -> String {
    // SAFETY: the function takes nothing and returns a static C string.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    version.to_string_lossy().into_owned()
}

/// Returns the sizes in bytes of the first- and second-level data caches, or a guess if the C library does not know
/// them.
pub(crate) fn data_caches() -> (usize, usize) {
    let size = |name, guess| {
        // SAFETY: `sysconf` takes any number and touches no memory of ours.
        let bytes = unsafe { libc::sysconf(name) };
        usize::try_from(bytes).ok().filter(|&bytes| bytes > 0).unwrap_or(guess)
    };
    (size(libc::_SC_LEVEL1_DCACHE_SIZE, 48 << 10), size(libc::_SC_LEVEL2_CACHE_SIZE, 2 << 20))
}

/// Returns the first line that a program prints, or "unknown".
pub(crate) fn first_line_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

fn read_line(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn load() -> String {
    read_line("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned()
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")).and_then(|rest| rest.split_once(": "));
    model.map_or_else(|| "unknown".to_owned(), |(_, name)| name.to_owned())
}
