//! Native frames of recordings are named from the files that were loaded, or not.

use std::path::PathBuf;

use stackweave_core::{BuildId, CodeAddress, Module};
use stackweave_profile::{AggregateOptions, Frame, RecordedNames, aggregate};
use stackweave_recording::ProcessRecording;
use stackweave_recording::file::{ProcessStart, RecordedFrame};
use stackweave_symbolize::{Symbolizer, SymbolizerOptions};
use stackweave_tapes::{Tape, native};
use stackweave_testkit::symbols::library::{Language, Split};
use stackweave_testkit::symbols::module_file::LibraryFile;

use crate::common::recording::paths;
use crate::common::{MadeUp, module, or_skip, resolver};

const BIAS: u64 = 0x7f00_0000_0000;

/// Records one sample for each of these addresses.
fn record(mut tape: Tape, modules: Vec<Module>, addresses: &[u64]) -> ProcessRecording {
    for module in modules {
        tape.module(module);
    }
    for (time, address) in (0..).zip(addresses) {
        tape.sample((1, time), &[native(BIAS + address)], 1);
    }
    tape.process()
}

/// Returns the named frames of every native frame, by address.
fn named(process: &ProcessRecording) -> Vec<(u64, Vec<Frame>)> {
    let numbers: Vec<u32> = process.dictionary().frames().map(|(number, _)| number).collect();
    let names = RecordedNames::resolve(process, &numbers, Some(&Symbolizer::new(SymbolizerOptions::default())));
    let address = |number: u32| match process.dictionary().frame(number) {
        Some(RecordedFrame::Native { address, .. }) => address.address(),
        other => panic!("{other:?}"),
    };
    numbers.iter().map(|number| (address(*number), names.of(*number).to_vec())).collect()
}

fn library() -> Result<(PathBuf, Vec<u64>), String> {
    let file = Language::Cpp.build(5, Split::No).map_err(|skipped| skipped.to_string())?;
    let addresses = LibraryFile::read(&file).sample(200).into_iter().map(|address| address + 1).collect();
    Ok((file, addresses))
}

fn are_unnamed(frames: &[(u64, Vec<Frame>)]) -> bool {
    let is_nameless = |(address, chain): &(u64, Vec<Frame>)| {
        chain.len() == 1 && *chain[0].name == format!("libshapes.so+{:#x}", address - BIAS)
    };
    frames.iter().all(is_nameless)
}

#[test]
fn names_equal_those_of_a_live_process() {
    let (file, addresses) = or_skip!(library());
    let process = record(Tape::new(), vec![module(&file, BIAS)], &addresses);
    let recorded = named(&process);
    let made_up = MadeUp::with_modules(vec![module(&file, BIAS)]);
    let live: Vec<CodeAddress> = recorded.iter().map(|(address, _)| CodeAddress::return_address(*address)).collect();
    let live = resolver().resolve_addresses(&live, &made_up);
    assert!(recorded.len() > 100 && recorded.iter().any(|(_, chain)| chain.len() > 2));
    for ((address, recorded), live) in recorded.iter().zip(&live) {
        let live: Vec<Frame> = live.iter().map(|frame| (**frame).clone()).collect();
        assert_eq!(*recorded, live, "{address:#x}");
    }
}

#[test]
fn another_build_at_the_same_path_gives_no_names() {
    let (file, addresses) = or_skip!(library());
    let other = Module { build_id: BuildId::new(&[1, 2, 3]), ..module(&file, BIAS) };
    assert!(are_unnamed(&named(&record(Tape::new(), vec![other], &addresses))));
}

#[test]
fn a_file_without_a_build_id_must_be_of_this_machine_and_older() {
    let (file, addresses) = or_skip!(library());
    let unmarked = Module { build_id: None, ..module(&file, BIAS) };
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim_end().to_owned();
    let are_named = |host: &str, started_wall_ns: i64| {
        let start = ProcessStart { host: host.to_owned(), started_wall_ns, ..ProcessStart::default() };
        !are_unnamed(&named(&record(Tape::started(&start), vec![unmarked.clone()], &addresses)))
    };
    assert!(are_named(&host, i64::MAX));
    assert!(!are_named("elsewhere", i64::MAX));
    assert!(!are_named(&host, 1));
}

#[test]
fn the_module_that_was_there_names_an_address() {
    let (file, addresses) = or_skip!(library());
    let old = Module { path: "/gone/libold.so".into(), build_id: None, ..module(&file, BIAS) };
    let (first, second) = addresses.split_at(addresses.len() / 2);
    let mut tape = Tape::new();
    for (module, addresses) in [(old, first), (module(&file, BIAS), second)] {
        tape.unload();
        tape.module(module);
        for address in addresses {
            tape.sample((1, *address), &[native(BIAS + address)], 1);
        }
        tape.flush(1);
    }
    let named = named(&tape.process());
    let (old, new): (Vec<_>, Vec<_>) = named.iter().partition(|(address, _)| first.contains(&(address - BIAS)));
    assert!(old.iter().all(|(_, chain)| chain[0].name.starts_with("libold.so+0x")));
    assert!(!old.is_empty() && !new.is_empty());
    assert!(new.iter().all(|(_, chain)| chain[0].module.as_deref() == Some("libshapes.so")));
    assert!(new.iter().any(|(_, chain)| chain.len() > 1));
}

#[test]
fn addresses_without_a_module_and_kernel_code_are_not_named() {
    let vdso = Module { path: "[vdso]".into(), build_id: None, bias: BIAS, start: BIAS, end: BIAS + 0x1000 };
    let process = record(Tape::new(), vec![vdso], &[0x10, 0x2000]);
    let names: Vec<String> = named(&process).into_iter().map(|(_, chain)| chain[0].name.to_string()).collect();
    assert_eq!(names, ["[vdso]+0x10".to_owned(), format!("{:#x}", BIAS + 0x2000)]);
}

#[test]
fn inlined_calls_are_nodes_of_the_tree() {
    let (file, addresses) = or_skip!(library());
    let process = record(Tape::new(), vec![module(&file, BIAS)], &addresses);
    let chains = named(&process);
    let symbolizer = Symbolizer::new(SymbolizerOptions::default());
    let progress = &mut |_| {};
    let all = aggregate(&[process], &AggregateOptions::default(), Some(&symbolizer), progress).unwrap();
    let profile = all.merged();
    assert_eq!(profile.total(), i64::try_from(addresses.len()).unwrap());
    let found: Vec<String> = paths(&profile).into_iter().map(|path| path.0).collect();
    for (address, chain) in &chains {
        let names: Vec<&str> = chain.iter().rev().map(|frame| &*frame.name).collect();
        assert!(found.contains(&names.join(";")), "{address:#x}: {names:?}");
    }
    let library = module(&file, BIAS);
    for function in profile.functions().functions() {
        let of = function.module.as_ref().map(|module| (&module.path, &module.build_id));
        assert_eq!(of, Some((&library.path, &library.build_id)), "{}", function.name);
    }
}
