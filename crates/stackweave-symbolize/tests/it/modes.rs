//! The modes: by this crate, by an addr2line child, by exported names only, and by a perf map.

use std::path::PathBuf;
use std::process::Command;

use stackweave_core::ModuleList;
use stackweave_symbolize::{SymbolSource, SymbolizeMode, Symbolized, Symbolizer, SymbolizerOptions, UnresolvedReason};
use stackweave_testkit::symbols::library::{Language, Split};
use stackweave_testkit::symbols::module_file::LibraryFile;

use crate::common::{exact, module, or_skip};

fn with_options(change: impl FnOnce(&mut SymbolizerOptions)) -> Symbolizer {
    let mut options = SymbolizerOptions::default();
    change(&mut options);
    Symbolizer::new(options)
}

#[test]
fn the_results_of_a_child_agree_with_this_crates() {
    if Command::new("addr2line").arg("--version").output().is_err() {
        println!("skipped: addr2line is not installed");
        return;
    }
    let file = or_skip!(Language::C.build(5, Split::No));
    let modules = ModuleList::new(vec![module(&file)]);
    let addresses: Vec<_> = LibraryFile::read(&file).sample(50).into_iter().map(exact).collect();
    let child = with_options(|options| options.mode = SymbolizeMode::Addr2line);
    let ours = Symbolizer::new(SymbolizerOptions::default()).resolve(&addresses, &modules);
    let expected = child.resolve(&addresses, &modules);
    let answered = expected.iter().filter(|resolved| resolved.source() == Some(SymbolSource::Addr2line)).count();
    assert!(answered * 10 >= addresses.len() * 9, "{answered} of {}", addresses.len());
    for (ours, expected) in ours.iter().zip(&expected) {
        let names = |resolved: &stackweave_symbolize::Resolved| {
            resolved.frames().iter().map(|frame| (frame.function.to_string(), frame.line)).collect::<Vec<_>>()
        };
        assert_eq!(names(ours), names(expected), "{:#x}", ours.offset);
    }
    assert_eq!((child.stats().child_failures, child.child_error()), (0, None));
}

#[test]
fn a_missing_program_of_the_child_is_replaced_and_reported() {
    let file = or_skip!(Language::C.build(5, Split::No));
    let modules = ModuleList::new(vec![module(&file)]);
    let address = exact(LibraryFile::read(&file).sample(1)[0]);
    let symbolizer = with_options(|options| {
        options.mode = SymbolizeMode::Addr2line;
        options.addr2line = Some(PathBuf::from("/nowhere/addr2line"));
    });
    let resolved = &symbolizer.resolve(&[address], &modules)[0];
    assert_eq!(resolved.source(), Some(SymbolSource::Dwarf));
    assert_eq!(symbolizer.stats().child_failures, 1);
    let error = symbolizer.child_error().expect("the reason");
    assert!(error.contains("/nowhere/addr2line"), "{error}");
}

#[test]
fn exported_names_are_found_as_dladdr_finds_them() {
    let file = or_skip!(Language::C.build(5, Split::No));
    let modules = ModuleList::new(vec![module(&file)]);
    let addresses: Vec<_> = LibraryFile::read(&file).sample(200).into_iter().map(exact).collect();
    let symbolizer = with_options(|options| options.mode = SymbolizeMode::Dladdr);
    let resolved = symbolizer.resolve(&addresses, &modules);
    let from = |source| resolved.iter().filter(|resolved| resolved.source() == Some(source)).count();
    assert!(from(SymbolSource::DynamicSymbols) > 0);
    assert_eq!(from(SymbolSource::Dwarf) + from(SymbolSource::SymbolTable), 0);
    // A function that is not exported is named by its start, not by its neighbour.
    assert!(from(SymbolSource::UnwindEntry) > 0);
    assert!(resolved.iter().all(|resolved| resolved.frames().iter().all(|frame| frame.line.is_none())));
}

#[test]
fn code_in_no_module_is_named_by_a_growing_perf_map() {
    let process = std::process::id();
    let map = PathBuf::from(format!("/tmp/perf-{process}.map"));
    std::fs::write(&map, "10000 100 compiled one\n").expect("the map is written");
    let symbolizer = with_options(|options| options.perf_map_of = Some(process));
    let name = |address| {
        let resolved = symbolizer.resolve(&[exact(address)], &ModuleList::default());
        match &resolved[0].symbolized {
            Symbolized::Frames { frames, source: SymbolSource::PerfMap } => Ok(frames[0].function.to_string()),
            Symbolized::Unknown(reason) => Err(*reason),
            other @ Symbolized::Frames { .. } => panic!("{other:?}"),
        }
    };
    assert_eq!(name(0x10080), Ok("compiled one".to_owned()));
    assert_eq!(name(0x20000), Err(UnresolvedReason::NoModule));
    std::fs::write(&map, "10000 100 compiled one\n20000 10 compiled later\n").expect("the map is written");
    assert_eq!(name(0x20000), Ok("compiled later".to_owned()));
    std::fs::remove_file(&map).expect("the map is removed");
}
