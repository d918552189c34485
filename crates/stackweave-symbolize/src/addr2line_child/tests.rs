//! Children that reply, and children that hang, die, write invalid output or are slow.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use super::*;
use crate::test_folder::TestFolder;

const SHORT: Duration = Duration::from_millis(400);
const LONG: Duration = Duration::from_secs(60);

/// Writes a program that replies to `--version`, and otherwise runs `script`.
fn fake(folder: &TestFolder, script: &str) -> PathBuf {
    let version = "[ \"$1\" = --version ] && { echo GNU addr2line, fake; exit; }";
    let path = folder.file("addr2line", format!("#!/bin/sh\n{version}\n{script}\n"));
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    // A child of another test may still have the file open, as this process had when it was forked: then it cannot
    // be run yet.
    while Command::new(&path).arg("--version").output().is_err() {
        std::thread::sleep(Duration::from_millis(1));
    }
    path
}

fn start(folder: &TestFolder, script: &str, deadline: Duration) -> Addr2lineChild {
    let binary = fake(folder, script);
    Addr2lineChild::start(&binary, &folder.file("module", ""), deadline).unwrap()
}

/// Returns whether there is such a process, other than one that its parent has not reaped.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn exists(child: &Addr2lineChild) -> bool {
    PathBuf::from(format!("/proc/{}", child.child_process.pid())).exists()
}

#[test]
fn a_hanging_child_is_ended_at_the_deadline_with_its_descendants() {
    let folder = TestFolder::new();
    let pid_file = folder.path().join("pid");
    let script = format!("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", pid_file.display());
    let mut child = start(&folder, &script, SHORT);
    let started = Instant::now();
    while !pid_file.exists() {
        assert!(started.elapsed() < LONG);
        std::thread::sleep(Duration::from_millis(1));
    }
    let sleeper = std::fs::read_to_string(&pid_file).unwrap().trim().to_owned();
    assert!(is_alive(&sleeper));
    let queried = Instant::now();
    let error = child.resolve(&[1]).unwrap_err();
    assert_eq!(error, ChildError::Hung(SHORT + PER_ADDRESS));
    assert!(queried.elapsed() >= SHORT && queried.elapsed() < LONG);
    assert!(!exists(&child));
    while is_alive(&sleeper) {
        assert!(started.elapsed() < LONG, "{sleeper} is still there");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(child.resolve(&[1]), Err(error));
}

#[test]
fn a_child_with_invalid_output_is_ended() {
    let folder = TestFolder::new();
    let mut child = start(&folder, "echo hello world; exec sleep 1000", LONG);
    let error = child.resolve(&[1]).unwrap_err();
    assert_eq!(error.to_string(), "addr2line child wrote invalid output: \"hello world\"");
    assert!(!exists(&child));
    let mut endless = start(&folder, "while :; do printf '0x1\\nf\\n??:0\\n'; done", LONG);
    assert!(matches!(endless.resolve(&[1]), Err(ChildError::InvalidOutput(_))));
}

#[test]
fn the_error_says_how_a_child_died() {
    let folder = TestFolder::new();
    let mut child = start(&folder, "read a; echo $a; echo f; echo broken disk >&2; exit 3", LONG);
    let error = child.resolve(&[1, 2]).unwrap_err();
    assert_eq!(error.to_string(), "addr2line child died (exit status: 3): broken disk");
    assert!(!exists(&child));
}

#[test]
fn a_child_that_died_before_its_first_query_is_harmless() {
    let folder = TestFolder::new();
    let mut child = start(&folder, "exit 0", LONG);
    std::thread::sleep(Duration::from_millis(100));
    assert!(matches!(child.resolve(&[1]), Err(ChildError::Died { .. })));
}

#[test]
fn a_slow_child_is_waited_for() {
    let folder = TestFolder::new();
    let script = "while read a; do sleep 0.02; echo $a; echo f$a; sleep 0.02; echo x.c:7; done";
    let mut child = start(&folder, script, LONG);
    let chains = child.resolve(&[0x10, u64::MAX, 0x20]).unwrap();
    let names: Vec<_> = chains.iter().map(|chain| chain.first().map(|frame| frame.function.to_string())).collect();
    assert_eq!(names, [Some("f0x10".to_owned()), None, Some("f0x20".to_owned())]);
    assert_eq!(child.resolve(&[]), Ok(vec![]));
    assert_eq!(child.resolve(&[0x30]).unwrap()[0][0].line, Some(7));
}

#[test]
fn a_child_with_much_error_output_and_late_results_does_not_block() {
    let folder = TestFolder::new();
    let script = "head -c 1000000 /dev/zero | tr '\\0' x >&2\n\
        while read a; do lines=\"$lines $a\"; [ $a = 0xffffffffffffffff ] || continue\n\
        for a in $lines; do printf '%s\\n%01000d\\nx.c:1\\n' $a 1; done; lines=; done";
    let mut child = start(&folder, script, LONG);
    let addresses: Vec<u64> = (1..5000).collect();
    let chains = child.resolve(&addresses).unwrap();
    assert_eq!(chains.len(), addresses.len());
    assert!(chains.iter().all(|chain| chain.len() == 1 && chain[0].function.len() == 1000));
}

#[test]
fn no_child_is_left_after_drop_or_panic() {
    let folder = TestFolder::new();
    let child = start(&folder, "exec sleep 1000", LONG);
    let pid = child.child_process.pid();
    drop(child);
    assert!(!PathBuf::from(format!("/proc/{pid}")).exists());
    let child = start(&folder, "exec sleep 1000", LONG);
    let pid = child.child_process.pid();
    let panicked = std::thread::spawn(move || {
        let _child = child;
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert!(!PathBuf::from(format!("/proc/{pid}")).exists());
}

#[test]
fn missing_files_are_named() {
    let folder = TestFolder::new();
    let module = folder.file("module", "");
    let missing = folder.path().join("nothing");
    let error = Addr2lineChild::start(&missing, &module, LONG).unwrap_err();
    assert_eq!(error, ChildError::NoProgram(missing.clone()));
    assert_eq!(error.to_string(), format!("no such addr2line program: {}", missing.display()));
    let error = Addr2lineChild::start(&module, &module, LONG).unwrap_err();
    assert!(matches!(error, ChildError::NotStarted(..)), "{error}");
    let error = Addr2lineChild::start(&module, &missing, LONG).unwrap_err();
    assert_eq!(error, ChildError::NoModuleFile(missing));
}

#[test]
fn installed_programs_resolve_this_function() {
    let file = std::env::current_exe().unwrap();
    let nm = Command::new("nm").arg("-C").arg(&file).output();
    let Ok(symbols) = nm.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()) else {
        println!("skipped: nm is not installed");
        return;
    };
    let Some(symbol) = symbols.lines().find(|line| line.contains("Addr2lineChild::resolve")) else {
        println!("skipped: no symbols");
        return;
    };
    let address = u64::from_str_radix(symbol.split(' ').next().unwrap(), 16).unwrap();
    for program in ["addr2line", "llvm-addr2line", "llvm-symbolizer"] {
        let binary = program::choose_program(Some(Path::new(program)));
        let mut child = match Addr2lineChild::start(&binary, &file, DEFAULT_DEADLINE) {
            Err(ChildError::NoProgram(_)) => {
                println!("skipped: {program} is not installed");
                continue;
            }
            started => started.unwrap(),
        };
        for _ in 0..2 {
            let chains = child.resolve(&[address, 2, address]).unwrap();
            let frame = chains[0].last().unwrap();
            assert!(frame.function.contains("resolve"), "{program}: {frame:?}");
            assert!(frame.file.as_ref().unwrap().ends_with("addr2line_child/mod.rs"), "{program}: {frame:?}");
            assert!(frame.line.is_some() && !frame.is_inlined);
            assert_eq!(chains[2], chains[0]);
        }
    }
}
