//! The sources of results, and their contents.

use stackweave_core::{CodeAddress, ModuleList};
use stackweave_symbolize::{SymbolSource, SymbolizeMode, Symbolizer, SymbolizerOptions};
use stackweave_testkit::symbols::library::{Language, Split};
use stackweave_testkit::symbols::module_file::LibraryFile;
use stackweave_testkit::symbols::variants::DebugInfoForm;

use crate::common::{exact, module, modules, or_skip, resolve_one, symbolizer};

#[test]
fn a_return_address_belongs_to_the_call_before_it() {
    let file = or_skip!(Language::Cpp.build(5, Split::No));
    let end = LibraryFile::read(&file).function("sw_gives_up").end;
    let symbolizer = symbolizer(&[]);
    let both = [CodeAddress::return_address(end), exact(end)];
    let answers = symbolizer.resolve(&both, &modules(&file));
    // The last instruction is a call that does not return.
    let called = answers[0].frames().last().unwrap();
    assert_eq!(&*called.function, "sw_gives_up");
    assert!(called.line.is_some());
    let next = answers[1].frames().last();
    assert!(next.is_none_or(|next| &*next.function != "sw_gives_up"), "{next:?}");
}

#[test]
fn a_return_address_and_an_exact_one_have_different_results() {
    let file = or_skip!(Language::C.build(5, Split::No));
    let start = LibraryFile::read(&file).function("sw_second").start;
    let symbolizer = symbolizer(&[]);
    for _ in 0..2 {
        let answers = symbolizer.resolve(&[exact(start), CodeAddress::return_address(start)], &modules(&file));
        assert_eq!(&*answers[0].frames()[0].function, "sw_second");
        assert!(answers[1].frames().iter().all(|frame| &*frame.function != "sw_second"), "{:?}", answers[1]);
        let again = symbolizer.resolve(&[CodeAddress::return_address(start + 1)], &modules(&file));
        assert_eq!(again[0].frames(), answers[0].frames());
    }
}

#[test]
fn a_nameless_function_is_named_by_its_start_and_never_by_its_neighbour() {
    let full = or_skip!(Language::C.build(5, Split::No));
    let stripped = or_skip!(DebugInfoForm::DynamicSymbols.of(&full));
    let truth = LibraryFile::read(&full);
    let symbolizer = symbolizer(&[]);
    for name in ["between", "last_static"] {
        let range = truth.function(name);
        for address in range.clone() {
            let resolved = resolve_one(&symbolizer, &stripped.file, address);
            assert_eq!(resolved.source(), Some(SymbolSource::UnwindEntry), "{address:#x}");
            let expected = format!("libexports.so+{:#x}", range.start);
            assert_eq!(&*resolved.frames()[0].function, expected, "{address:#x}");
        }
    }
    for name in ["sw_first", "sw_second", "sw_third"] {
        for address in truth.function(name) {
            let resolved = resolve_one(&symbolizer, &stripped.file, address);
            assert_eq!(resolved.source(), Some(SymbolSource::DynamicSymbols), "{address:#x}");
            assert_eq!(&*resolved.frames()[0].function, name, "{address:#x}");
        }
    }
}

#[test]
fn each_form_is_resolved_from_its_best_source() {
    let full = or_skip!(Language::C.build(5, Split::No));
    let truth = LibraryFile::read(&full);
    let (exported, local) = (truth.function("sw_second").start + 1, truth.function("between").start + 1);
    for form in DebugInfoForm::ALL {
        let variant = match form.of(&full) {
            Ok(variant) => variant,
            Err(skipped) => {
                println!("{form:?}: {skipped}");
                continue;
            }
        };
        let expected = match form {
            DebugInfoForm::SymbolTable => [SymbolSource::SymbolTable, SymbolSource::SymbolTable],
            DebugInfoForm::MiniDebugInfo => [SymbolSource::DynamicSymbols, SymbolSource::MiniDebugInfo],
            DebugInfoForm::DynamicSymbols => [SymbolSource::DynamicSymbols, SymbolSource::UnwindEntry],
            _ => [SymbolSource::Dwarf, SymbolSource::Dwarf],
        };
        let symbolizer = symbolizer(&variant.debug_folders);
        let found = [exported, local].map(|address| resolve_one(&symbolizer, &variant.file, address));
        assert_eq!(found.each_ref().map(|resolved| resolved.source()), expected.map(Some), "{form:?}");
        let lines = found.iter().filter_map(|resolved| resolved.frames()[0].line).count();
        assert_eq!(lines, if variant.has_lines { 2 } else { 0 }, "{form:?}: {found:?}");
    }
}

#[test]
fn a_result_has_its_module_its_offset_and_inlined_calls() {
    let file = or_skip!(Language::Cpp.build(5, Split::No));
    let range = LibraryFile::read(&file).function("sw_nested");
    let bias = 0x7f12_3456_7000;
    let mut module = module(&file);
    (module.bias, module.start, module.end) = (bias, bias, bias + 0x10_0000);
    let modules = ModuleList::new(vec![module]);
    let addresses: Vec<CodeAddress> = range.clone().map(|address| exact(address + bias)).collect();
    let mut deepest = 0;
    for (resolved, address) in symbolizer(&[]).resolve(&addresses, &modules).iter().zip(range) {
        assert_eq!(resolved.module.as_deref(), Some("libshapes.so"));
        assert_eq!(resolved.offset, address);
        let (last, inlined) = resolved.frames().split_last().unwrap();
        assert!(!last.is_inlined && inlined.iter().all(|frame| frame.is_inlined), "{resolved:?}");
        assert_eq!(&*last.function, "sw_nested");
        deepest = deepest.max(inlined.len());
    }
    assert_eq!(deepest, 3, "outer, middle and innermost are inlined into sw_nested");
}

#[test]
fn dladdr_mode_knows_only_exported_names() {
    let file = or_skip!(Language::C.build(5, Split::No));
    let truth = LibraryFile::read(&file);
    let mut options = SymbolizerOptions::default();
    options.mode = SymbolizeMode::Dladdr;
    let symbolizer = Symbolizer::new(options);
    let exported = resolve_one(&symbolizer, &file, truth.function("sw_second").start);
    assert_eq!((&*exported.frames()[0].function, exported.frames()[0].line), ("sw_second", None));
    assert_eq!(exported.source(), Some(SymbolSource::DynamicSymbols));
    let local = resolve_one(&symbolizer, &file, truth.function("between").start);
    assert_eq!(local.source(), Some(SymbolSource::UnwindEntry));
}
