//! Models of the tables of stacks, blobs and addresses.

use std::sync::Arc;

use loom::cell::Cell;
use loom::thread;
use stackweave_core::{CodeAddress, RawFrame, StackId};

use crate::Model;
use crate::address_map::AddressMap;
use crate::atomic::AtomicU64;
use crate::blob_table::BlobTable;
use crate::id_table::IdTable;
use crate::stack_hash::StackHash;
use crate::stack_index::StackIndex;
use crate::stack_table::StackTable;

pub(crate) const ALL: &[Model] = &[
    ("address_map_has_one_winner", address_map_has_one_winner),
    ("address_map_publishes_earlier_writes", address_map_publishes_earlier_writes),
    ("address_map_keeps_addresses_separate", address_map_keeps_addresses_separate),
    ("address_map_removes_once", address_map_removes_once),
    ("each_id_is_allocated_to_one_thread", each_id_is_allocated_to_one_thread),
    ("stack_index_has_one_winner", stack_index_has_one_winner),
    ("stack_index_keeps_hashes_separate", stack_index_keeps_hashes_separate),
    ("equal_stacks_have_equal_ids", equal_stacks_have_equal_ids),
    ("stacks_with_shared_callers_keep_their_frames", stacks_with_shared_callers_keep_their_frames),
    ("equal_blobs_have_equal_ids", equal_blobs_have_equal_ids),
    ("different_blobs_have_different_ids", different_blobs_have_different_ids),
];

/// Runs both functions concurrently, and returns their results.
fn both<T: Send + 'static>(
    first: impl FnOnce() -> T + Send + 'static,
    second: impl FnOnce() -> T + Send + 'static,
) -> [T; 2] {
    let threads = [thread::spawn(first), thread::spawn(second)];
    threads.map(|thread| thread.join().unwrap())
}

/// Runs both functions concurrently with a shared value.
fn both_of<S: Send + Sync + 'static, T: Send + 'static>(
    shared: &Arc<S>,
    first: fn(&S) -> T,
    second: fn(&S) -> T,
) -> [T; 2] {
    let [of_first, of_second] = [Arc::clone(shared), Arc::clone(shared)];
    both(move || first(&of_first), move || second(&of_second))
}

fn address_map_has_one_winner() {
    let map = Arc::new(AddressMap::new());
    let [first, second] = both_of(&map, |map| map.insert(64, 7), |map| map.insert(64, 8));
    assert!(first == second && (first == Some(7) || first == Some(8)));
    assert_eq!((map.get(64), map.stats().addresses, map.stats().live), (first, 1, 1));
}

struct Described {
    map: AddressMap,
    description: Cell<u32>,
}

// SAFETY: the model proves that one thread sees what the other wrote; loom runs one thread at a time.
unsafe impl Sync for Described {}
// SAFETY: the model proves that one thread sees what the other wrote; loom runs one thread at a time.
unsafe impl Send for Described {}

fn address_map_publishes_earlier_writes() {
    let shared = Arc::new(Described { map: AddressMap::new(), description: Cell::new(0) });
    // Otherwise the creation of the table would publish the write.
    shared.map.insert(16, 1);
    let write = |shared: &Described| {
        shared.description.set(5);
        shared.map.insert(64, 7);
    };
    let read = |shared: &Described| {
        if shared.map.get(64) == Some(7) {
            assert_eq!(shared.description.get(), 5);
        }
    };
    both_of(&shared, write, read);
}

/// Inserts addresses into one bucket with two slots, and a second table of the same size: all addresses share them.
fn address_map_keeps_addresses_separate() {
    let map = Arc::new(AddressMap::new());
    map.insert(16, 1);
    let insert_two = |map: &AddressMap| [map.insert(32, 2), map.insert(48, 3)];
    let insert_same = |map: &AddressMap| [map.insert(48, 3), map.insert(32, 2)];
    both_of(&map, insert_two, insert_same);
    assert_eq!([16, 32, 48, 64].map(|address| map.get(address)), [Some(1), Some(2), Some(3), None]);
    assert_eq!(map.stats().addresses, 3);
}

fn address_map_removes_once() {
    let map = Arc::new(AddressMap::new());
    map.insert(64, 7);
    let [first, second] = both_of(&map, |map| map.remove(64), |map| map.remove(64));
    assert!([first, second] == [Some(7), None] || [first, second] == [None, Some(7)]);
    assert_eq!((map.get(64), map.insert(64, 9), map.stats().live), (None, Some(9), 1));
}

fn each_id_is_allocated_to_one_thread() {
    let ids = Arc::new(IdTable::<AtomicU64>::starting_with(1));
    ids.allocate_run(3);
    let allocate = |ids: &IdTable<AtomicU64>| {
        let freed = ids.allocate_run(2).unwrap();
        ids.free_run(freed, 2);
        let (one, _) = ids.allocate().unwrap();
        [one, ids.allocate().unwrap().0]
    };
    let mut allocated = both_of(&ids, allocate, allocate).concat();
    allocated.sort_unstable();
    allocated.dedup();
    assert!(allocated.len() == 4 && allocated[0] > 3, "{allocated:?}");
}

fn hash(number: u64) -> StackHash {
    StackHash { kept: number, bucket: 0 }
}

fn id(number: u32) -> StackId {
    StackId::new(number).unwrap()
}

fn stack_index_has_one_winner() {
    let index = Arc::new(StackIndex::new());
    let [first, second] = both_of(&index, |index| index.add(hash(1), id(10)), |index| index.add(hash(1), id(11)));
    assert!(first == second && first.is_some());
    assert_eq!(index.find(hash(1)), first);
}

fn stack_index_keeps_hashes_separate() {
    let index = Arc::new(StackIndex::new());
    index.add(hash(1), id(11));
    let add = |index: &StackIndex| [2, 3].map(|number| index.add(hash(number.into()), id(10 + number)));
    let add_back = |index: &StackIndex| [3, 2].map(|number| index.add(hash(number.into()), id(10 + number)));
    both_of(&index, add, add_back);
    assert!((1..=3).all(|number| index.find(hash(number.into())) == Some(id(10 + number))));
    assert_eq!(index.find(hash(4)), None);
}

/// Returns a stack whose frames are named by letters, innermost first.
fn stack(names: &str) -> Vec<RawFrame> {
    names.bytes().map(|name| RawFrame::native(CodeAddress::return_address(name.into()))).collect()
}

/// Interns a stack, and checks its frames in the same thread.
fn interned(table: &StackTable, names: &str) -> StackId {
    let id = table.intern(&stack(names)).unwrap();
    assert_eq!(table.frames(id).collect::<Vec<_>>(), stack(names), "{names}");
    id
}

/// Returns a table with some frames, and the stack of the caller.
fn table_with_frames() -> Arc<StackTable> {
    let table = StackTable::new();
    for names in ["a", "x", "y"] {
        interned(&table, names);
    }
    Arc::new(table)
}

fn equal_stacks_have_equal_ids() {
    let table = table_with_frames();
    let [first, second] = both_of(&table, |table| interned(table, "yxa"), |table| interned(table, "yxa"));
    assert_eq!(first, second);
}

fn stacks_with_shared_callers_keep_their_frames() {
    let table = table_with_frames();
    let [first, second] = both_of(&table, |table| interned(table, "xa"), |table| interned(table, "ya"));
    assert_ne!(first, second);
    assert_eq!([first, second].map(|id| table.parent(id)), [Some(interned(&table, "a")); 2]);
    assert_eq!([interned(&table, "xa"), interned(&table, "ya")], [first, second]);
}

/// Interns a blob, and checks its bytes in the same thread.
fn blob(table: &BlobTable, text: &[u8]) -> u32 {
    let id = table.intern(&[text]).unwrap();
    assert_eq!(table.get(id), Some(text));
    id.get()
}

fn equal_blobs_have_equal_ids() {
    let table = Arc::new(BlobTable::new());
    let [first, second] = both_of(&table, |table| blob(table, b"same"), |table| blob(table, b"same"));
    assert_eq!(first, second);
    assert_eq!(blob(&table, b"other") == first, false);
}

fn different_blobs_have_different_ids() {
    let table = Arc::new(BlobTable::new());
    let [first, second] = both_of(&table, |table| blob(table, b"one"), |table| blob(table, b"two"));
    assert_ne!(first, second);
    assert_eq!([blob(&table, b"one"), blob(&table, b"two")], [first, second]);
}
