//! Equal stacks have equal ids, independent of the thread and of the number of stacks.

use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;

use stackweave_core::{CodeAddress, CodeId, RawFrame, StackId};
use stackweave_store::{StackHasher, StackTable};
use stackweave_testkit::random::Random;

/// Returns one of a few frames, of any kind.
fn frame(random: &mut Random, variety: usize) -> RawFrame {
    let number = random.below(variety) as u64;
    match random.byte_below(4) {
        0 => RawFrame::python(
            CodeId::new(random.byte_below(3).into()).unwrap_or(FIRST_CODE),
            random.byte_below(9).into(),
            false,
        ),
        1 => RawFrame::script(random.byte_below(2), number),
        2 => RawFrame::native(CodeAddress::instruction_pointer(0x7f00_0000_0000 + number)),
        _ => RawFrame::native(CodeAddress::return_address(0x7f00_0000_0000 + number * 16)),
    }
}

const FIRST_CODE: CodeId = match CodeId::new(1) {
    Some(code) => code,
    None => unreachable!(),
};

/// Returns stacks of up to `depth` frames. Many are equal, and many more share their callers.
fn stacks(seed: u64, count: usize, depth: usize) -> Vec<Vec<RawFrame>> {
    let mut random = Random::new(seed);
    let mut stacks: Vec<Vec<RawFrame>> = Vec::new();
    for _ in 0..count {
        let mut stack = match stacks.len() {
            0 => Vec::new(),
            known => stacks[random.below(known)].clone(),
        };
        let returns = random.below(4).min(stack.len());
        stack.drain(..returns);
        for _ in 0..random.below(4) {
            stack.insert(0, frame(&mut random, 6));
        }
        stack.drain(..stack.len().saturating_sub(depth));
        stacks.push(stack);
    }
    stacks
}

#[test]
fn stacks_keep_their_frames_and_only_equal_ones_share_an_id() {
    for seed in 0..20 {
        let table = StackTable::new();
        let mut by_frames: HashMap<Vec<RawFrame>, StackId> = HashMap::new();
        let mut by_id: HashMap<StackId, Vec<RawFrame>> = HashMap::new();
        for stack in stacks(seed, 2000, 40) {
            let id = table.intern(&stack).unwrap();
            assert!(table.frames(id).eq(stack.iter().copied()));
            assert_eq!(table.len(id) as usize, stack.len());
            assert_eq!(*by_frames.entry(stack.clone()).or_insert(id), id);
            assert_eq!(*by_id.entry(id).or_insert_with(|| stack.clone()), stack);
        }
        assert!(by_frames.len() > 500);
    }
}

#[test]
fn the_tree_has_one_node_for_each_list_of_callers() {
    let table = StackTable::new();
    let stacks = stacks(77, 3000, 40);
    for stack in &stacks {
        table.intern(stack);
    }
    let mut distinct: Vec<&[RawFrame]> =
        stacks.iter().flat_map(|stack| (0..stack.len()).map(|at| &stack[at..])).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(table.stats().stacks as usize, distinct.len());
    for stack in distinct {
        let (id, callers) = (table.intern(stack).unwrap(), table.intern(&stack[1..]).unwrap());
        assert_eq!(table.parent(id), Some(callers));
    }
    assert_eq!(table.stats().refused, 0);
}

#[test]
fn hashing_while_walking_gives_the_same_id() {
    let table = StackTable::new();
    for stack in stacks(5, 2000, 60) {
        let mut hasher = StackHasher::new();
        for frame in &stack {
            hasher.push(*frame);
        }
        assert_eq!(table.intern_hashed(hasher, &stack), table.intern(&stack));
    }
}

#[test]
fn eight_threads_agree_on_every_id() {
    for seed in 0..10 {
        let table = StackTable::new();
        let stacks = stacks(100 + seed, 4000, 30);
        let start = Barrier::new(8);
        let intern_all = |thread: usize| {
            start.wait();
            // Half of the threads use the same order, so that they meet; the others begin elsewhere.
            let from = if thread.is_multiple_of(2) { 0 } else { thread * 501 };
            let mut ids = vec![None; stacks.len()];
            for place in (from..stacks.len()).chain(0..from) {
                ids[place] = table.intern(&stacks[place]);
            }
            ids
        };
        let ids: Vec<Vec<Option<StackId>>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || intern_all(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|others| *others == ids[0]));
        for (id, stack) in ids[0].iter().zip(&stacks) {
            assert!(table.frames(id.unwrap()).eq(stack.iter().copied()));
        }
    }
}

#[test]
fn a_million_stacks_keep_their_ids_and_few_bytes() {
    let table = StackTable::new();
    let root = [RawFrame::native(CodeAddress::return_address(1)), RawFrame::native(CodeAddress::return_address(2))];
    let stack =
        |number: u64| [RawFrame::native(CodeAddress::return_address(0x5500_0000 + number * 4)), root[0], root[1]];
    let ids: Vec<StackId> = (0..1_000_000).filter_map(|number| table.intern(&stack(number))).collect();
    assert_eq!(ids.len(), 1_000_000);
    assert!((0..).zip(&ids).all(|(number, id)| table.intern(&stack(number)) == Some(*id)));
    assert!((0..).zip(&ids).all(|(number, id)| table.frames(*id).eq(stack(number))));
    let stats = table.stats();
    assert_eq!(stats.stacks, 1_000_002);
    let bytes = (stats.tree_bytes + stats.index_bytes) / 1_000_000;
    assert!(bytes <= 100, "{bytes} bytes of address space for each stack");
}

/// Callers without other callees need no memory in the index, and are found nevertheless.
#[test]
fn stacks_of_few_different_frames_share_the_memory_of_frames() {
    const STACKS: u64 = 100_000;
    let table = StackTable::new();
    let frame = |address: u64| RawFrame::native(CodeAddress::return_address(0x40_0000 + address * 8));
    let stack = |number: u64| [frame(1), frame(2), frame(3), frame(number % 1000), frame(1000 + number / 1000)];
    let ids: Vec<StackId> = (0..STACKS).filter_map(|number| table.intern(&stack(number))).collect();
    assert!((0..).zip(&ids).all(|(number, id)| table.frames(*id).eq(stack(number))));
    let stats = table.stats();
    let bytes = (stats.tree_bytes + stats.index_bytes) as u64 / STACKS;
    assert!(bytes <= 130, "{bytes} bytes of address space for each stack");
    for (number, id) in (0..).zip(&ids) {
        let callers = table.intern(&stack(number)[1..]);
        assert_eq!((callers, table.len(*id)), (table.parent(*id), 5));
    }
    assert_eq!(table.stats().stacks, stats.stacks, "the callers had nodes already");
}

#[test]
fn very_deep_stacks_can_be_interned() {
    let table = StackTable::new();
    let mut random = Random::new(9);
    let stack: Vec<RawFrame> = (0..100_000).map(|_| frame(&mut random, 1000)).collect();
    let id = table.intern(&stack).unwrap();
    assert_eq!(table.len(id), 100_000);
    assert!(table.frames(id).eq(stack.iter().copied()));
    assert_eq!(table.intern(&stack), Some(id));
}
