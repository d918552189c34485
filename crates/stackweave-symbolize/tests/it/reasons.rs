//! Nothing is lost silently: every unresolved address has a reason, and reasons are counted.

use std::fs;
use std::path::Path;

use stackweave_core::{BuildId, ModuleList};
use stackweave_symbolize::{Symbolized, Symbolizer, SymbolizerOptions, UnresolvedReason};
use stackweave_testkit::symbols::library::{Language, Split};
use stackweave_testkit::symbols::module_file::LibraryFile;
use stackweave_testkit::symbols::variants::DebugInfoForm;

use crate::common::{Scratch, exact, module, modules, or_skip, resolve_one, symbolizer};

fn unknown(reason: UnresolvedReason) -> Symbolized {
    Symbolized::Unknown(reason)
}

fn count(symbolizer: &Symbolizer, reason: UnresolvedReason) -> u64 {
    symbolizer.stats().unknown[reason as usize]
}

#[test]
fn an_address_in_no_module_has_a_reason() {
    let symbolizer = symbolizer(&[]);
    let answers = symbolizer.resolve(&[exact(0x1234)], &ModuleList::default());
    assert_eq!((&answers[0].symbolized, &answers[0].module), (&unknown(UnresolvedReason::NoModule), &None));
    assert_eq!(count(&symbolizer, UnresolvedReason::NoModule), 1);
}

#[test]
fn a_missing_file_is_a_reason() {
    let file = or_skip!(Language::C.build(5, Split::No));
    let mut absent = module(&file);
    absent.path = "/nowhere/libexports.so".into();
    let symbolizer = symbolizer(&[]);
    let answers = symbolizer.resolve(&[exact(0x1139), exact(0x1140)], &ModuleList::new(vec![absent]));
    for answer in &answers {
        assert_eq!(answer.symbolized, unknown(UnresolvedReason::MissingFile));
        assert_eq!(answer.module.as_deref(), Some("libexports.so"));
    }
    assert_eq!(count(&symbolizer, UnresolvedReason::MissingFile), 2);
}

#[test]
fn a_different_build_id_is_a_reason() {
    let file = or_skip!(Language::C.build(5, Split::No));
    let mut other = module(&file);
    other.build_id = BuildId::new(&[1, 2, 3, 4]);
    let symbolizer = symbolizer(&[]);
    let answers = symbolizer.resolve(&[exact(0x1139)], &ModuleList::new(vec![other]));
    assert_eq!(answers[0].symbolized, unknown(UnresolvedReason::ChangedFile));
    assert_eq!(count(&symbolizer, UnresolvedReason::ChangedFile), 1);
}

#[test]
fn a_file_rewritten_while_in_use_is_opened_again() {
    let (file, other) = (or_skip!(Language::C.build(5, Split::No)), or_skip!(Language::C.build(4, Split::No)));
    let scratch = Scratch::new("rewritten");
    let copy = scratch.copy(&file, "libexports.so");
    let modules = modules(&copy);
    let (first, second) =
        (LibraryFile::read(&file).function("sw_first"), LibraryFile::read(&file).function("sw_second"));
    let symbolizer = symbolizer(&[]);
    assert_eq!(symbolizer.resolve(&[exact(first.start)], &modules)[0].frames().len(), 1);
    fs::write(&copy, fs::read(&other).unwrap()).unwrap();
    for address in [first.start, second.start] {
        let answers = symbolizer.resolve(&[exact(address)], &modules);
        assert_eq!(answers[0].symbolized, unknown(UnresolvedReason::ChangedFile), "{address:#x}");
    }
}

#[test]
fn a_file_replaced_or_deleted_while_in_use_remains_valid_with_a_build_id() {
    let (file, other) = (or_skip!(Language::C.build(5, Split::No)), or_skip!(Language::Cpp.build(5, Split::No)));
    let scratch = Scratch::new("replaced");
    let copy = scratch.copy(&file, "libexports.so");
    let second = LibraryFile::read(&file).function("sw_second").start;
    let (known_by_id, mut known_by_path) = (modules(&copy), module(&copy));
    known_by_path.build_id = None;
    let known_by_path = ModuleList::new(vec![known_by_path]);
    let symbolizer = symbolizer(&[]);
    for modules in [&known_by_id, &known_by_path] {
        assert_eq!(symbolizer.resolve(&[exact(second + 1)], modules)[0].frames().len(), 1);
    }
    let replacement = scratch.copy(&other, "replacement");
    fs::rename(replacement, &copy).unwrap();
    // The loaded module is still the file that was opened.
    assert_eq!(&*symbolizer.resolve(&[exact(second)], &known_by_id)[0].frames()[0].function, "sw_second");
    // Without a build id this is not known, and the file at the path is used.
    let frames = symbolizer.resolve(&[exact(second)], &known_by_path);
    assert!(frames[0].frames().iter().all(|frame| &*frame.function != "sw_second"), "{frames:?}");
    fs::remove_file(&copy).unwrap();
    assert_eq!(&*symbolizer.resolve(&[exact(second + 2)], &known_by_id)[0].frames()[0].function, "sw_second");
}

#[test]
fn a_file_that_is_not_elf_is_a_reason() {
    let scratch = Scratch::new("bad");
    let cases: [(&str, &[u8]); 4] = [
        ("empty", b""),
        ("text", b"not an ELF file, but long enough to be regarded as one: ................"),
        ("magic", b"\x7fELF"),
        ("narrow", b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x03\0\x01\0\0\0"),
    ];
    for (name, bytes) in cases {
        let path = scratch.path().join(name);
        fs::write(&path, bytes).unwrap();
        let mut bad = module(Path::new("/proc/self/exe"));
        (bad.path, bad.build_id) = (path, None);
        let symbolizer = symbolizer(&[]);
        let answers = symbolizer.resolve(&[exact(0x1000)], &ModuleList::new(vec![bad]));
        assert_eq!(answers[0].symbolized, unknown(UnresolvedReason::BadFile), "{name}");
        assert_eq!(count(&symbolizer, UnresolvedReason::BadFile), 1, "{name}");
    }
}

#[test]
fn an_address_in_no_function_has_a_reason() {
    let full = or_skip!(Language::C.build(5, Split::No));
    for form in [DebugInfoForm::Full, DebugInfoForm::SymbolTable, DebugInfoForm::DynamicSymbols] {
        let variant = or_skip!(form.of(&full));
        let symbolizer = symbolizer(&[]);
        let end = LibraryFile::read(&full).end;
        for address in [0x10, end, end + 0x1000, u64::MAX >> 2] {
            let resolved = resolve_one(&symbolizer, &variant.file, address);
            assert_eq!(resolved.symbolized, unknown(UnresolvedReason::NoSymbol), "{form:?} {address:#x}");
            assert_eq!(resolved.offset, address);
        }
        assert_eq!(count(&symbolizer, UnresolvedReason::NoSymbol), 4);
    }
}

#[test]
fn files_of_another_machine_are_found_on_the_search_path() {
    let file = or_skip!(Language::C.build(5, Split::No));
    let second = LibraryFile::read(&file).function("sw_second").start;
    let scratch = Scratch::new("offline");
    let mut away = module(&file);
    away.path = "/opt/app/lib/libexports.so".into();
    let modules = ModuleList::new(vec![away.clone()]);
    let offline = || {
        let mut options = SymbolizerOptions::default();
        options.search_path = vec![scratch.path().join("nothing"), scratch.path().join("files")];
        Symbolizer::new(options).resolve(&[exact(second)], &modules).remove(0)
    };
    assert_eq!(offline().symbolized, unknown(UnresolvedReason::MissingFile));
    for place in ["files/libexports.so", "files/opt/app/lib/libexports.so"] {
        let copy = scratch.copy(&file, place);
        assert_eq!(&*offline().frames()[0].function, "sw_second", "{place}");
        fs::remove_file(copy).unwrap();
    }
    let other = or_skip!(Language::C.build(4, Split::No));
    scratch.copy(&other, "files/libexports.so");
    assert_eq!(offline().symbolized, unknown(UnresolvedReason::ChangedFile), "the same name, but a different build");
    scratch.copy(&file, "files/opt/app/lib/libexports.so");
    assert_eq!(&*offline().frames()[0].function, "sw_second", "the right build is found behind the wrong one");
}
