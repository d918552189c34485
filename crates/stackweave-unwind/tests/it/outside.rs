//! Complete programs: under gdb, stripped, linked statically, inside Python.

use std::ffi::{CString, c_char, c_int};
use std::path::Path;
use std::process::Command;

use stackweave_testkit::fixtures::{call_through, sw_noreturn, sw_recurse, sw_sort, sw_std_ostream, sw_throw_through};
use stackweave_testkit::library::Library;
use stackweave_testkit::oracles::{ALL, gdb};
use stackweave_testkit::signals::{SignalStack, in_handler};
use stackweave_testkit::stack_checker::StackChecker;
use stackweave_testkit::tree::{FUNCTIONS, FramePointers, walk};
use stackweave_testkit::{child, subject};
use stackweave_unwind::CodeAddress;

const LIMIT: usize = 512;

/// Does nothing. gdb stops here.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn stackweave_marker() {
    std::hint::black_box(());
}

/// Prints the captured stack, then lets gdb print its own.
#[inline(never)]
fn print_stack_for_gdb() {
    let mut frames = [CodeAddress::default(); LIMIT];
    let captured = subject::capture(&mut frames, 0);
    let words: Vec<_> = frames[..captured.len].iter().map(|frame| format!("{:x}", frame.address())).collect();
    println!("\ncaptured {:?} {}", captured.stop, words.join(" "));
    stackweave_marker();
}

/// Calls the fixtures at which gdb stops. Returns the number of stacks.
fn show_stacks_to_gdb() -> usize {
    let mut stacks = 0;
    let mut show = || {
        print_stack_for_gdb();
        stacks += 1;
    };
    show();
    // SAFETY: the fixtures get a callback with its own data.
    call_through(&mut show, |callback, data| unsafe {
        sw_recurse(20, callback, data);
        sw_noreturn(callback, data);
        sw_throw_through(callback, data);
        sw_std_ostream(callback, data);
    });
    let path: Vec<u8> = (0..FUNCTIONS).collect();
    walk(FramePointers::Omitted, &path, &mut |_| show());
    walk(FramePointers::Kept, &path, &mut |_| show());
    for stack in [SignalStack::Normal, SignalStack::Alternate] {
        in_handler(stack, &mut |_| show());
    }
    stacks
}

#[test]
fn gdb_finds_the_same_stacks() {
    const NAME: &str = "outside::gdb_finds_the_same_stacks";
    if child::role().is_some() {
        println!("\nstacks {}", show_stacks_to_gdb());
        return;
    }
    if !gdb::is_installed() {
        println!("skipped: gdb is not installed, or has no Python");
        return;
    }
    let (stacks, text) = gdb::stacks_at("stackweave_marker", &child::own_executable(), NAME, "gdb", 40);
    let captured: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("captured ")).collect();
    assert!(captured.len() >= 12, "{text}");
    assert_eq!(captured.len(), stacks.len(), "{text}");
    for (line, expected) in captured.iter().zip(&stacks) {
        let mut words = line.split(' ');
        assert_eq!(words.next(), Some("EndOfStack"), "{text}");
        let ours: Vec<_> = words.map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
        // gdb's first frame is the marker, its second the capturing function, at a different instruction.
        assert_eq!(format!("{:x?}", &ours[1..]), format!("{:x?}", &expected[2..]), "{text}");
    }
}

#[test]
fn a_stripped_program_is_captured_completely() {
    const NAME: &str = "outside::a_stripped_program_is_captured_completely";
    if child::role().is_some() {
        let mut checker = StackChecker::new(4096);
        // SAFETY: the fixtures get a callback with its own data.
        call_through(&mut || checker.check_here("stripped program", ALL), |callback, data| unsafe {
            sw_recurse(100, callback, data);
            sw_sort(callback, data);
            sw_throw_through(callback, data);
        });
        checker.expect_agreement(20);
        return;
    }
    let stripped = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stripped-{}", std::process::id()));
    let strip = Command::new("strip").arg("-s").arg("-o").arg(&stripped).arg(child::own_executable()).status();
    if !strip.is_ok_and(|status| status.success()) {
        println!("skipped: strip is not installed");
        return;
    }
    let output = child::run(&mut child::command(&stripped, NAME, "stripped"));
    let _ = std::fs::remove_file(&stripped);
    assert!(output.status.success(), "{}", child::text(&output));
}

/// Returns whether the program is position-independent and needs no loader.
fn is_static_pie(program: &Path) -> bool {
    let listing = Command::new("readelf").args(["-hlW"]).arg(program).output().expect("binutils are installed");
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    listing.contains("DYN (") && !listing.contains("INTERP")
}

#[test]
fn a_static_pie_program_is_captured_completely() {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("static");
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build
        .args(["build", "--offline", "--quiet", "-p", "stackweave-testkit", "--bin", "static-child"])
        .args(["--target", TARGET, "--target-dir"])
        .arg(&directory)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    let outcome = child::run_for(&mut build, 170);
    assert!(outcome.status.success(), "{}", child::text(&outcome));
    let program = directory.join(TARGET).join("debug/static-child");
    assert!(is_static_pie(&program), "{} is no static-pie", program.display());
    let stripped = program.with_extension("stripped");
    let strip = Command::new("strip").arg("-s").arg("-o").arg(&stripped).arg(&program).status();
    assert!(strip.is_ok_and(|status| status.success()), "binutils are installed");
    for program in [program, stripped] {
        let output = child::run(&mut Command::new(&program));
        assert!(output.status.success(), "{}: {}", program.display(), child::text(&output));
    }
}

const PYTHON_SCRIPT: &str = r#"
import ctypes, functools, sys, threading
kit = ctypes.CDLL(sys.argv[1])
kit.stackweave_testkit_compare.restype = ctypes.c_char_p
kit.stackweave_testkit_depth.restype = ctypes.c_size_t
checks = 0
def check(*ignored):
    global checks
    difference = kit.stackweave_testkit_compare()
    if difference:
        sys.exit(difference.decode())
    checks += 1
    return 0
libc = ctypes.CDLL(None)
Compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def nested(level):
    check()
    if level:
        compare = Compare(lambda a, b: nested(level - 1) or 0)
        libc.qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare)
    return 0
class Closing:
    def __del__(self):
        check()
def recurse(depth):
    return recurse(depth - 1) if depth else check()
nested(6)
sorted([3, 1, 2], key=check)
functools.reduce(check, [1, 2, 3])
list(map(check, [1, 2]))
sum(check() for i in range(3))
Closing()
recurse(200)
thread = threading.Thread(target=nested, args=(3,))
thread.start()
thread.join()
print("checks", checks, "depth", kit.stackweave_testkit_depth())
"#;

#[test]
fn python_with_nested_callbacks_is_captured_completely() {
    let kit = child::own_executable().with_file_name("libstackweave_testkit.so");
    let mut ran = Vec::new();
    for python in ["python3", "/usr/bin/python3"] {
        if !Command::new(python).arg("--version").output().is_ok_and(|output| output.status.success()) {
            continue;
        }
        let output = child::run(Command::new(python).args(["-c", PYTHON_SCRIPT]).arg(&kit));
        let text = child::text(&output);
        assert!(output.status.success() && text.contains("checks 2"), "{python}: {text}");
        ran.push(python);
    }
    if ran.is_empty() {
        println!("skipped: python3 is not installed");
    }
}

/// Returns the newest shared libpython that the loader finds.
fn libpython() -> Option<Library> {
    (8..=20).rev().find_map(|minor| Library::open_for_all(&format!("libpython3.{minor}.so.1.0")))
}

/// Runs the script in an interpreter inside this process. Exits the process if a comparison fails.
fn run_embedded(libpython: &Library, kit: &Path) {
    let script = format!("import sys\nsys.argv = ['', {:?}]\n{PYTHON_SCRIPT}", kit.display().to_string());
    let script = CString::new(script).expect("no null in the script");
    // SAFETY: the symbols have these signatures in every Python 3; nothing else uses the interpreter.
    let status = unsafe {
        let initialize: extern "C" fn(c_int) = std::mem::transmute(libpython.symbol("Py_InitializeEx"));
        let run: extern "C" fn(*const c_char) -> c_int = std::mem::transmute(libpython.symbol("PyRun_SimpleString"));
        initialize(0);
        run(script.as_ptr())
    };
    assert_eq!(status, 0, "the script failed");
}

#[test]
fn a_shared_libpython_in_this_process_is_captured_completely() {
    const NAME: &str = "outside::a_shared_libpython_in_this_process_is_captured_completely";
    let kit = child::own_executable().with_file_name("libstackweave_testkit.so");
    if child::role().is_some() {
        let libpython = libpython().expect("the parent found it");
        run_embedded(&libpython, &kit);
        std::mem::forget(libpython); // the interpreter is not shut down
        return;
    }
    if libpython().is_none() {
        println!("skipped: no shared libpython is installed");
        return;
    }
    let output = child::run(&mut child::command(&child::own_executable(), NAME, "embedded"));
    let text = child::text(&output);
    assert!(output.status.success() && text.contains("checks 2"), "{text}");
}
