//! Nothing is lost in silence: what could not be told has a reason, and the reasons are counted.

use std::fs;
use std::path::Path;

use stackweave_core::{BuildId, ModuleList};
use stackweave_symbolize::{Options, Reason, Symbolized, Symbolizer};
use stackweave_testkit::symbols::library::{Language, Split};
use stackweave_testkit::symbols::module_file::ModuleFile;
use stackweave_testkit::symbols::variants::Form;

use crate::common::{Scratch, exact, module, modules, or_skip, resolve_one, symbolizer};

fn unknown(reason: Reason) -> Symbolized {
    Symbolized::Unknown(reason)
}

fn count(symbolizer: &Symbolizer, reason: Reason) -> u64 {
    symbolizer.stats().unknown[reason as usize]
}

#[test]
fn an_address_in_no_module() {
    let symbolizer = symbolizer(&[]);
    let answers = symbolizer.resolve(&[exact(0x1234)], &ModuleList::default());
    assert_eq!((&answers[0].symbolized, &answers[0].module), (&unknown(Reason::NoModule), &None));
    assert_eq!(count(&symbolizer, Reason::NoModule), 1);
}

#[test]
fn a_file_that_is_not_there() {
    let file = or_skip!(Language::C.build(5, Split::No));
    let mut absent = module(&file);
    absent.path = "/nowhere/libexports.so".into();
    let symbolizer = symbolizer(&[]);
    let answers = symbolizer.resolve(&[exact(0x1139), exact(0x1140)], &ModuleList::new(vec![absent]));
    for answer in &answers {
        assert_eq!(answer.symbolized, unknown(Reason::MissingFile));
        assert_eq!(answer.module.as_deref(), Some("libexports.so"));
    }
    assert_eq!(count(&symbolizer, Reason::MissingFile), 2);
}

#[test]
fn a_file_with_another_build_id() {
    let file = or_skip!(Language::C.build(5, Split::No));
    let mut other = module(&file);
    other.build_id = BuildId::new(&[1, 2, 3, 4]);
    let symbolizer = symbolizer(&[]);
    let answers = symbolizer.resolve(&[exact(0x1139)], &ModuleList::new(vec![other]));
    assert_eq!(answers[0].symbolized, unknown(Reason::ChangedFile));
    assert_eq!(count(&symbolizer, Reason::ChangedFile), 1);
}

#[test]
fn a_file_that_was_rewritten_while_in_use() {
    let (file, other) = (or_skip!(Language::C.build(5, Split::No)), or_skip!(Language::C.build(4, Split::No)));
    let scratch = Scratch::new("rewritten");
    let copy = scratch.copy(&file, "libexports.so");
    let modules = modules(&copy);
    let (first, second) = (ModuleFile::read(&file).function("sw_first"), ModuleFile::read(&file).function("sw_second"));
    let symbolizer = symbolizer(&[]);
    assert_eq!(symbolizer.resolve(&[exact(first.start)], &modules)[0].frames().len(), 1);
    fs::write(&copy, fs::read(&other).unwrap()).unwrap();
    for address in [first.start, second.start] {
        let answers = symbolizer.resolve(&[exact(address)], &modules);
        assert_eq!(answers[0].symbolized, unknown(Reason::ChangedFile), "{address:#x}");
    }
}

#[test]
fn a_file_that_was_replaced_or_deleted_while_in_use() {
    let (file, other) = (or_skip!(Language::C.build(5, Split::No)), or_skip!(Language::Cpp.build(5, Split::No)));
    let scratch = Scratch::new("replaced");
    let copy = scratch.copy(&file, "libexports.so");
    let second = ModuleFile::read(&file).function("sw_second").start;
    let (known_by_id, mut known_by_path) = (modules(&copy), module(&copy));
    known_by_path.build_id = None;
    let known_by_path = ModuleList::new(vec![known_by_path]);
    let symbolizer = symbolizer(&[]);
    for modules in [&known_by_id, &known_by_path] {
        assert_eq!(symbolizer.resolve(&[exact(second + 1)], modules)[0].frames().len(), 1);
    }
    let replacement = scratch.copy(&other, "replacement");
    fs::rename(replacement, &copy).unwrap();
    // The module that runs is still the one that was opened.
    assert_eq!(&*symbolizer.resolve(&[exact(second)], &known_by_id)[0].frames()[0].function, "sw_second");
    // Without a build id nobody can say that, and the file at the path is what counts.
    let frames = symbolizer.resolve(&[exact(second)], &known_by_path);
    assert!(frames[0].frames().iter().all(|frame| &*frame.function != "sw_second"), "{frames:?}");
    fs::remove_file(&copy).unwrap();
    assert_eq!(&*symbolizer.resolve(&[exact(second + 2)], &known_by_id)[0].frames()[0].function, "sw_second");
}

#[test]
fn a_file_that_is_no_elf_file() {
    let scratch = Scratch::new("bad");
    let cases: [(&str, &[u8]); 4] = [
        ("empty", b""),
        ("text", b"not an ELF file, but long enough to be taken for one: ................"),
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
        assert_eq!(answers[0].symbolized, unknown(Reason::BadFile), "{name}");
        assert_eq!(count(&symbolizer, Reason::BadFile), 1, "{name}");
    }
}

#[test]
fn an_address_that_is_in_no_function() {
    let full = or_skip!(Language::C.build(5, Split::No));
    for form in [Form::Full, Form::SymbolTable, Form::DynamicSymbols] {
        let variant = or_skip!(form.of(&full));
        let symbolizer = symbolizer(&[]);
        let end = ModuleFile::read(&full).end;
        for address in [0x10, end, end + 0x1000, u64::MAX >> 2] {
            let resolved = resolve_one(&symbolizer, &variant.file, address);
            assert_eq!(resolved.symbolized, unknown(Reason::NoSymbol), "{form:?} {address:#x}");
            assert_eq!(resolved.offset, address);
        }
        assert_eq!(count(&symbolizer, Reason::NoSymbol), 4);
    }
}

#[test]
fn files_of_another_machine_are_found_on_the_search_path() {
    let file = or_skip!(Language::C.build(5, Split::No));
    let second = ModuleFile::read(&file).function("sw_second").start;
    let scratch = Scratch::new("offline");
    let mut away = module(&file);
    away.path = "/opt/app/lib/libexports.so".into();
    let modules = ModuleList::new(vec![away.clone()]);
    let offline = || {
        let mut options = Options::default();
        options.search_path = vec![scratch.path().join("nothing"), scratch.path().join("files")];
        Symbolizer::new(options).resolve(&[exact(second)], &modules).remove(0)
    };
    assert_eq!(offline().symbolized, unknown(Reason::MissingFile));
    for place in ["files/libexports.so", "files/opt/app/lib/libexports.so"] {
        let copy = scratch.copy(&file, place);
        assert_eq!(&*offline().frames()[0].function, "sw_second", "{place}");
        fs::remove_file(copy).unwrap();
    }
    let other = or_skip!(Language::C.build(4, Split::No));
    scratch.copy(&other, "files/libexports.so");
    assert_eq!(offline().symbolized, unknown(Reason::ChangedFile), "the same name, another build");
    scratch.copy(&file, "files/opt/app/lib/libexports.so");
    assert_eq!(&*offline().frames()[0].function, "sw_second", "the right build is found behind the wrong one");
}
