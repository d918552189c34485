//! The headers, in the languages that they are for, and what the libraries offer.

use std::collections::BTreeSet;
use std::process::Command;

use crate::common::{INCLUDE, compilers, example, library_folder, run, shared_library, static_library, workshop};

const STRICT: [&str; 6] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow", "-Wconversion"];

#[test]
fn headers_compile_alone_and_strictly() {
    let cases = [
        ("stackweave.h", "c", "c11", &["gcc", "clang"]),
        ("stackweave.h", "c++", "c++17", &["g++", "clang++"]),
        ("stackweave.hpp", "c++", "c++17", &["g++", "clang++"]),
    ];
    for (header, language, standard, names) in cases {
        let source = workshop("headers").join(format!("{header}.{language}.in"));
        // Twice, for its guard.
        std::fs::write(&source, format!("#include \"{header}\"\n#include \"{header}\"\n")).expect("our own folder");
        for compiler in compilers(names) {
            let mut command = Command::new(compiler);
            command.args(STRICT).arg(format!("-std={standard}")).args(["-fsyntax-only", "-x", language]);
            run(command.arg("-I").arg(INCLUDE).arg(&source));
        }
    }
}

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = std::fs::read_to_string(format!("{INCLUDE}/stackweave.h")).expect("the header is there");
    let code: String = header.lines().filter(|line| !line.starts_with("//") && !line.starts_with("  ")).collect();
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let last_word = |text: &str| text.rsplit(|character| !is_name(character)).next().unwrap_or_default().to_owned();
    code.split('(').map(last_word).filter(|name| name.starts_with("stackweave_")).collect()
}

#[test]
fn the_shared_library_offers_what_the_header_says_and_nothing_else() {
    let text = run(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(shared_library()));
    let offered: BTreeSet<String> = text.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect();
    assert_eq!(offered, declared());
    assert!(offered.len() > 20, "{offered:?}");
}

#[test]
fn a_thread_may_end_after_the_library_was_closed() {
    let text = run(Command::new("readelf").args(["-dW"]).arg(shared_library()));
    assert!(text.contains("NODELETE"), "{text}");
    assert!(text.contains("libstackweave.so.0"), "{text}");
}

#[test]
fn the_c_host_weaves_its_frames_linked_either_way() {
    let folder = library_folder();
    let static_library = static_library();
    let dynamic =
        [format!("-L{}", folder.display()), "-lstackweave".into(), format!("-Wl,-rpath,{}", folder.display())];
    let linked = [static_library.display().to_string(), "-pthread".to_owned(), "-ldl".into(), "-lm".into()];
    for compiler in compilers(&["gcc", "clang"]) {
        for (name, link) in [("dynamic", &dynamic[..]), ("static", &linked[..])] {
            let program = workshop("c-host").join(format!("{compiler}-{name}"));
            let mut command = Command::new(compiler);
            command.args(&STRICT[..4]).args(["-std=c11", "-O2", "-g", "-D_POSIX_C_SOURCE=200809L", "-I", INCLUDE]);
            command.arg(example("c-host").join("main.c")).arg("-o").arg(&program).args(link);
            run(&mut command);
            check_c_host(&run(&mut Command::new(&program)));
        }
    }
}

/// Both stacks begin with the host's own frames: none of the library's, wherever its code lies.
fn check_c_host(text: &str) {
    let names = |part: &str| {
        let named = |line: &str| line.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(" ");
        part.lines().skip(1).take_while(|line| line.starts_with("  ")).map(named).collect::<Vec<_>>()
    };
    let (called, interrupted) = text.split_once("interrupted by a signal").expect("two stacks");
    let own = [
        "script print",
        "native leaf",
        "native interpret",
        "script loop",
        "native interpret",
        "script program",
        "native interpret",
        "native main",
    ];
    assert_eq!(names(called)[..own.len()], own, "{text}");
    let interrupted = names(interrupted);
    let start = interrupted.iter().position(|name| name == own[0]).expect("the program's frames");
    assert_eq!(interrupted[start..][..own.len()], own, "{text}");
    assert!(interrupted[..start].iter().all(|name| name.starts_with("native ")), "{text}");
    assert!(text.contains("3 captures, stackweave "), "{text}");
}
