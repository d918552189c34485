//! Native frames: names as by llvm-symbolizer, chains of inlined calls, and caching.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use stackweave_core::{CodeAddress, RawFrame, StackId};
use stackweave_profile::FrameKind;
use stackweave_store::StackTable;
use stackweave_testkit::fixtures::{call_through, sw_aba_root, sw_recurse};
use stackweave_testkit::symbols::library::{Language, Split};
use stackweave_testkit::symbols::llvm_symbolizer;
use stackweave_testkit::symbols::module_file::LibraryFile;
use stackweave_testkit::symbols::names::canonical;

use crate::common::{MadeUp, ThisProcess, capture, module, names, native, or_skip, resolver};

const BIAS: u64 = 0x7f00_0000_0000;

#[test]
fn names_lines_and_inlined_calls_are_those_of_llvm_symbolizer() {
    let file = or_skip!(Language::Cpp.build(5, Split::No));
    let addresses = LibraryFile::read(&file).sample(400);
    let truth = or_skip!(llvm_symbolizer::resolve(&file, &addresses, &[]));
    let made_up = MadeUp::with_modules(vec![module(&file, BIAS)]);
    let exact = addresses.iter().map(|address| CodeAddress::instruction_pointer(address + BIAS)).collect::<Vec<_>>();
    let resolved = resolver().resolve_addresses(&exact, &made_up);
    let mut chains = 0;
    for ((chain, places), address) in resolved.iter().zip(&truth).zip(&addresses) {
        let ours: Vec<_> = chain.iter().map(|frame| (canonical(&frame.name), frame.position.line)).collect();
        let known = |place: &stackweave_testkit::symbols::SymbolizedFrame| {
            (canonical(place.function.as_deref().unwrap_or_default()), (place.line > 0).then_some(place.line))
        };
        assert_eq!(ours, places.iter().map(known).collect::<Vec<_>>(), "{address:#x}");
        for (depth, frame) in chain.iter().enumerate() {
            assert_eq!(frame.is_inlined, depth + 1 < chain.len(), "{address:#x}");
            assert_eq!((frame.kind, frame.address), (FrameKind::Native, Some(address + BIAS)));
            assert_eq!(frame.module.as_deref(), Some("libshapes.so"));
        }
        chains += usize::from(chain.len() > 2);
    }
    assert!(chains > 10, "only {chains} of {} addresses have calls inlined into inlined ones", addresses.len());
}

#[test]
fn captured_stacks_have_the_functions_that_ran() {
    let (stacks, resolver) = (StackTable::new(), resolver());
    let mut ids = Vec::new();
    for through_q in [0, 1] {
        let mut action = || ids.push(capture(&stacks));
        call_through(&mut action, |callback, data| {
            // SAFETY: the fixture gets a callback with its own data.
            unsafe { sw_aba_root(through_q, callback, data) };
        });
    }
    let batch = resolver.resolve(&stacks, &ids, &ThisProcess);
    for (stack, way) in batch.iter().zip(["sw_aba_p", "sw_aba_q"]) {
        let found = names(stack);
        let leaf = found.iter().position(|name| *name == "sw_aba_leaf").expect("the fixture's leaf ran");
        assert_eq!(found[leaf..leaf + 4], ["sw_aba_leaf", "sw_aba_x", way, "sw_aba_root"]);
        let here = found[leaf..].iter().any(|name| name.contains("captured_stacks_have_the_functions_that_ran"));
        assert!(here, "{found:?}");
    }
    let (one, other) = (&batch[0], &batch[1]);
    let shared = one.iter().filter(|frame| other.iter().any(|same| Arc::ptr_eq(frame, same))).count();
    assert!(shared >= one.len() - 5, "{shared} of {} frames are shared", one.len());
}

#[test]
fn known_addresses_are_not_looked_up_again() {
    let file = or_skip!(Language::Cpp.build(5, Split::No));
    let made_up = MadeUp::with_modules(vec![module(&file, BIAS)]);
    let stacks = StackTable::new();
    let frames: Vec<RawFrame> =
        LibraryFile::read(&file).sample(100).into_iter().map(|address| native(BIAS + address)).collect();
    let ids: Vec<StackId> = frames.windows(20).filter_map(|frames| stacks.intern(frames)).collect();
    let resolver = resolver();
    resolver.resolve(&stacks, &ids, &made_up);
    let first = resolver.symbolizer().stats();
    assert_eq!(first.addresses, frames.len() as u64, "each distinct address once");
    resolver.resolve(&stacks, &ids, &made_up);
    assert_eq!(resolver.symbolizer().stats(), first);
}

#[test]
fn an_address_without_a_name_has_its_location() {
    let file = or_skip!(Language::C.build(5, Split::No));
    let mut gone = module(Path::new(&file), BIAS);
    gone.path = "/nowhere/libmissing.so".into();
    let made_up = MadeUp::with_modules(vec![gone]);
    let addresses = [CodeAddress::return_address(BIAS + 0x1234), CodeAddress::instruction_pointer(0x7e00_1234_5678)];
    let resolved = resolver().resolve_addresses(&addresses, &made_up);
    assert_eq!(names(&resolved[0]), ["libmissing.so+0x1234"]);
    assert_eq!(names(&resolved[1]), ["0x7e0012345678"]);
    assert_eq!(resolved[0][0].module.as_deref(), Some("libmissing.so"));
    assert_eq!((&resolved[1][0].module, &resolved[1][0].filename), (&None, &None));
}

#[test]
fn threads_resolve_their_captures_concurrently() {
    let (stacks, resolver) = (StackTable::new(), resolver());
    thread::scope(|scope| {
        for depth in 0..8_u32 {
            let (stacks, resolver) = (&stacks, &resolver);
            scope.spawn(move || {
                for round in 0..20 {
                    let mut id = None;
                    let mut action = || id = Some(capture(stacks));
                    call_through(&mut action, |callback, data| {
                        // SAFETY: the fixture gets a callback with its own data.
                        unsafe { sw_recurse(depth + round, callback, data) };
                    });
                    let batch = resolver.resolve(stacks, &[id.expect("it calls back")], &ThisProcess);
                    let recursions = names(&batch[0]).iter().filter(|name| **name == "sw_recurse").count();
                    assert_eq!(recursions as u64, u64::from(depth + round) + 1);
                }
            });
        }
    });
}
