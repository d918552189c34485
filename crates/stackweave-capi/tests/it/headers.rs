//! The headers in C and C++, and the symbols of the libraries.

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
        // Twice, to test the include guard.
        std::fs::write(&source, format!("#include \"{header}\"\n#include \"{header}\"\n"))
            .expect("the folder is writable");
        for compiler in compilers(names) {
            let mut command = Command::new(compiler);
            command.args(STRICT).arg(format!("-std={standard}")).args(["-fsyntax-only", "-x", language]);
            run(command.arg("-I").arg(INCLUDE).arg(&source));
        }
    }
}

/// Returns the functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = std::fs::read_to_string(format!("{INCLUDE}/stackweave.h")).expect("the header is there");
    let code: String = header.lines().filter(|line| !line.starts_with("//") && !line.starts_with("  ")).collect();
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let last_word = |text: &str| text.rsplit(|character| !is_name(character)).next().unwrap_or_default().to_owned();
    code.split('(').map(last_word).filter(|name| name.starts_with("stackweave_")).collect()
}

#[test]
fn the_shared_library_exports_exactly_the_functions_of_the_header() {
    let text = run(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(shared_library()));
    let exported: BTreeSet<String> = text.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect();
    assert_eq!(exported, declared());
    assert!(exported.len() > 20, "{exported:?}");
}

#[test]
fn the_shared_library_is_never_unloaded_and_has_a_versioned_name() {
    let text = run(Command::new("readelf").args(["-dW"]).arg(shared_library()));
    assert!(text.contains("NODELETE"), "{text}");
    assert!(text.contains("libstackweave.so.0"), "{text}");
}

#[test]
fn the_c_host_weaves_its_frames_linked_dynamically_and_statically() {
    let folder = library_folder();
    let static_library = static_library();
    let dynamic_link =
        [format!("-L{}", folder.display()), "-lstackweave".into(), format!("-Wl,-rpath,{}", folder.display())];
    let static_link = [static_library.display().to_string(), "-pthread".to_owned(), "-ldl".into(), "-lm".into()];
    for compiler in compilers(&["gcc", "clang"]) {
        for (name, link) in [("dynamic", &dynamic_link[..]), ("static", &static_link[..])] {
            let program = workshop("c-host").join(format!("{compiler}-{name}"));
            let mut command = Command::new(compiler);
            command.args(&STRICT[..4]).args(["-std=c11", "-O2", "-g", "-D_POSIX_C_SOURCE=200809L", "-I", INCLUDE]);
            command.arg(example("c-host").join("main.c")).arg("-o").arg(&program).args(link);
            run(&mut command);
            check_c_host(&run(&mut Command::new(&program)));
        }
    }
}

/// Checks that both stacks begin with frames of the host, and have none of the library, however it is linked.
fn check_c_host(text: &str) {
    let names = |part: &str| {
        let named = |line: &str| line.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(" ");
        part.lines().skip(1).take_while(|line| line.starts_with("  ")).map(named).collect::<Vec<_>>()
    };
    let (called, interrupted) = text.split_once("interrupted by a signal").expect("two stacks");
    let host_frames = [
        "script print",
        "native leaf",
        "native interpret",
        "script loop",
        "native interpret",
        "script program",
        "native interpret",
        "native main",
    ];
    assert_eq!(names(called)[..host_frames.len()], host_frames, "{text}");
    let interrupted = names(interrupted);
    let start = interrupted.iter().position(|name| name == host_frames[0]).expect("the program's frames");
    assert_eq!(interrupted[start..][..host_frames.len()], host_frames, "{text}");
    assert!(interrupted[..start].iter().all(|name| name.starts_with("native ")), "{text}");
    assert!(text.contains("3 captures, stackweave "), "{text}");
}
