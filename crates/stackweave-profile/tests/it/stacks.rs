//! Stacks of a made-up process: order, sharing, the number of queries, and reentrant calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use stackweave_core::{CodeAddress, CodeId, Module, ModuleList, RawFrame, SourceLocation, StackId};
use stackweave_profile::{Frame, FrameKind, FrameNames, Resolver};
use stackweave_store::StackTable;
use stackweave_testkit::random::Random;

use crate::common::{MadeUp, location, names, native, python, resolver};

#[test]
fn a_woven_stack_keeps_its_order() {
    let (stacks, made_up) = (StackTable::new(), MadeUp::default());
    let frames = [native(0x10), python(1, 3), python(2, 5), native(0x20), RawFrame::script(2, 9), python(1, 3)];
    let id = stacks.intern(&frames).unwrap();
    let resolved = resolver().resolve(&stacks, &[id], &made_up);
    assert_eq!(names(&resolved[0]), ["0x10", "py1", "py2", "0x20", "script2-9", "py1"]);
    let kinds: Vec<&str> = resolved[0].iter().map(|frame| frame.kind.as_str()).collect();
    assert_eq!(kinds, ["native", "python", "python", "native", "script", "python"]);
    assert_eq!(resolved[0][2].filename.as_deref(), Some("2.py"));
    assert_eq!(resolved[0][2].position.line, Some(5));
    assert_eq!((resolved[0][0].address, resolved[0][1].address), (Some(0x10), None));
    assert_eq!(resolved[0][0].filename, None);
}

#[test]
fn equal_frames_and_equal_stacks_are_shared() {
    let (stacks, made_up, resolver) = (StackTable::new(), MadeUp::default(), resolver());
    let entered = RawFrame::python(CodeId::new(1).unwrap(), 3, true);
    let one = stacks.intern(&[python(1, 3), native(0x10), RawFrame::script(0, 1)]).unwrap();
    let other = stacks.intern(&[entered, native(0x10)]).unwrap();
    let batch = resolver.resolve(&stacks, &[one, other, one], &made_up);
    assert!(Arc::ptr_eq(&batch[0], &batch[2]));
    assert!(!Arc::ptr_eq(&batch[0], &batch[1]));
    assert!(Arc::ptr_eq(&batch[0][0], &batch[1][0]), "one line of one function, however it was entered");
    assert!(Arc::ptr_eq(&batch[0][1], &batch[1][1]));
    let again = resolver.resolve(&stacks, &[one], &made_up);
    for (frame, before) in again[0].iter().zip(batch[0].iter()) {
        assert!(Arc::ptr_eq(frame, before), "{frame:?} was created again");
    }
}

#[test]
fn python_frames_are_located_once_and_script_frames_in_each_batch() {
    let (stacks, made_up, resolver) = (StackTable::new(), MadeUp::default(), resolver());
    let ids: Vec<StackId> = (1..50)
        .map(|code| stacks.intern(&[python(code, 1), python(code % 7 + 1, 2), RawFrame::script(0, 1)]).unwrap())
        .collect();
    resolver.resolve(&stacks, &ids, &made_up);
    assert_eq!(made_up.located.load(Ordering::Relaxed), 49 + 7 + 1);
    resolver.resolve(&stacks, &ids, &made_up);
    assert_eq!(made_up.located.load(Ordering::Relaxed), 49 + 7 + 2);
    assert_eq!(made_up.module_queries.load(Ordering::Relaxed), 0, "without native frames, the loader is not queried");
}

#[test]
fn an_unknown_frame_is_queried_again() {
    let (stacks, made_up, resolver) = (StackTable::new(), MadeUp::default(), resolver());
    let id = stacks.intern(&[python(2000, 1), python(1, 1)]).unwrap();
    for round in 1..3 {
        let stack = resolver.resolve(&stacks, &[id], &made_up).remove(0);
        assert_eq!(names(&stack), [Frame::UNKNOWN, "py1"]);
        assert_eq!((stack[0].kind, &stack[0].filename), (FrameKind::Python, &None));
        assert_eq!(made_up.located.load(Ordering::Relaxed), 1 + round);
    }
}

#[test]
fn extra_frames_follow_their_python_frame_and_are_queried_in_each_batch() {
    let stacks = StackTable::new();
    let made_up = MadeUp { has_extra_frames: true, ..MadeUp::default() };
    let entered = RawFrame::python(CodeId::new(1).unwrap(), 3, true);
    let ids = [[python(1, 3), python(1, 4)], [entered, python(2, 3)]].map(|frames| stacks.intern(&frames).unwrap());
    let resolver = resolver();
    for round in 1..3 {
        let batch = resolver.resolve(&stacks, &ids, &made_up);
        assert_eq!(names(&batch[0]), ["py1", "inner of 1.py", "outer of 1.py", "py1"]);
        let second = ["py1", "inner of 1.py", "outer of 1.py", "py2", "inner of 2.py", "outer of 2.py"];
        assert_eq!(names(&batch[1]), second);
        assert_eq!(batch[0][1].kind, FrameKind::Extra);
        assert!(Arc::ptr_eq(&batch[0][1], &batch[1][1]));
        assert_eq!(made_up.extra_frame_queries.load(Ordering::Relaxed), 3 * round, "three distinct lines");
    }
    let without = MadeUp::default();
    assert_eq!(names(&resolver.resolve(&stacks, &ids, &without)[0]), ["py1", "py1"], "nothing is kept of them");
}

#[test]
fn no_ids_give_no_stacks() {
    let (stacks, made_up, resolver) = (StackTable::new(), MadeUp::default(), resolver());
    assert!(resolver.resolve(&stacks, &[], &made_up).is_empty());
    let never_given = StackId::new(1234).unwrap();
    let batch = resolver.resolve(&stacks, &[StackId::EMPTY, never_given], &made_up);
    assert!(batch.len() == 2 && batch.iter().all(|stack| stack.is_empty()));
    assert!(resolver.resolve_addresses(&[], &made_up).is_empty());
}

/// Resolves stacks whenever it is queried for names.
struct Reentrant<'a> {
    resolver: &'a Resolver,
    stacks: &'a StackTable,
    inner: StackId,
    queries: AtomicUsize,
}

impl Reentrant<'_> {
    fn resolve_inside(&self) {
        self.queries.fetch_add(1, Ordering::Relaxed);
        let made_up = MadeUp { has_extra_frames: true, ..MadeUp::default() };
        let resolved = self.resolver.resolve(self.stacks, &[self.inner], &made_up);
        assert_eq!(names(&resolved[0])[..2], ["py9", "inner of 9.py"]);
    }
}

impl FrameNames for Reentrant<'_> {
    fn locate(&self, _: RawFrame) -> Option<SourceLocation> {
        self.resolve_inside();
        Some(location("outside", "outside.py", 1))
    }

    fn has_extra_frames(&self) -> bool {
        self.resolve_inside();
        true
    }

    fn frames_behind(&self, _: &str, _: u32) -> Vec<SourceLocation> {
        self.resolve_inside();
        vec![location("behind", "behind.py", 1)]
    }

    fn modules(&self) -> ModuleList {
        self.resolve_inside();
        ModuleList::default()
    }
}

#[test]
fn names_may_resolve_stacks_during_a_query() {
    let (resolver, stacks) = (resolver(), StackTable::new());
    let inner = stacks.intern(&[python(9, 3)]).unwrap();
    let reentrant = Reentrant { resolver: &resolver, stacks: &stacks, inner, queries: AtomicUsize::new(0) };
    let id = stacks.intern(&[native(0x10), python(1, 1)]).unwrap();
    let batch = resolver.resolve(&stacks, &[id], &reentrant);
    assert_eq!(names(&batch[0]), ["0x10", "outside", "behind"]);
    assert_eq!(reentrant.queries.load(Ordering::Relaxed), 4, "each query once");
}

#[test]
fn a_panic_in_names_does_no_harm() {
    struct Panics;
    impl FrameNames for Panics {
        fn locate(&self, _: RawFrame) -> Option<SourceLocation> {
            panic!("on purpose");
        }

        fn has_extra_frames(&self) -> bool {
            false
        }

        fn frames_behind(&self, _: &str, _: u32) -> Vec<SourceLocation> {
            Vec::new()
        }

        fn modules(&self) -> ModuleList {
            ModuleList::default()
        }
    }
    let (resolver, stacks) = (resolver(), StackTable::new());
    let id = stacks.intern(&[python(1, 3)]).unwrap();
    thread::scope(|scope| assert!(scope.spawn(|| resolver.resolve(&stacks, &[id], &Panics)).join().is_err()));
    assert_eq!(names(&resolver.resolve(&stacks, &[id], &MadeUp::default())[0]), ["py1"]);
}

#[test]
fn eight_threads_get_the_same_frames_while_modules_are_loaded_and_unloaded() {
    let (resolver, stacks) = (resolver(), StackTable::new());
    let made_up = MadeUp { has_extra_frames: true, ..MadeUp::default() };
    let frame = |number: usize| match u32::try_from(number).unwrap() {
        number if number.is_multiple_of(3) => native(0x1_0000 + u64::from(number)),
        number => python(number % 100 + 1, number % 5 + 1),
    };
    let ids: Vec<StackId> = (0..400)
        .map(|stack| stacks.intern(&(0..20).map(|depth| frame(stack * 7 + depth * 31)).collect::<Vec<_>>()).unwrap())
        .collect();
    let module =
        |start| Module { path: "/none/missing.so".into(), build_id: None, bias: start, start, end: start + 0x1000 };
    let expected = resolver.resolve(&stacks, &ids, &made_up);
    thread::scope(|scope| {
        for seed in 0..8 {
            let (resolver, stacks, ids, expected, made_up) = (&resolver, &stacks, &ids, &expected, &made_up);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..100 {
                    let picked: Vec<usize> = (0..40).map(|_| random.below(ids.len())).collect();
                    let batch: Vec<StackId> = picked.iter().map(|index| ids[*index]).collect();
                    made_up.load(vec![module(0x100_0000 + 0x800 * u64::from(random.byte_below(8)))]);
                    for (stack, index) in resolver.resolve(stacks, &batch, made_up).iter().zip(picked) {
                        for (frame, expected) in stack.iter().zip(expected[index].iter()) {
                            assert!(Arc::ptr_eq(frame, expected), "{frame:?}, {expected:?}");
                        }
                        assert_eq!(stack.len(), expected[index].len());
                    }
                }
            });
        }
    });
}

#[test]
fn addresses_are_resolved_one_by_one_and_equal_ones_together() {
    let made_up = MadeUp::default();
    let addresses = [0x30, 0x20, 0x30].map(CodeAddress::return_address);
    let resolved = resolver().resolve_addresses(&addresses, &made_up);
    let found: Vec<Vec<&str>> = resolved.iter().map(|chain| names(chain)).collect();
    assert_eq!(found, [["0x30"], ["0x20"], ["0x30"]]);
    assert!(Arc::ptr_eq(&resolved[0], &resolved[2]));
}
