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
    ("address_map_shows_what_was_written_before", address_map_shows_what_was_written_before),
    ("address_map_keeps_addresses_apart", address_map_keeps_addresses_apart),
    ("address_map_removes_once", address_map_removes_once),
    ("ids_are_given_to_one_thread", ids_are_given_to_one_thread),
    ("stack_index_has_one_winner", stack_index_has_one_winner),
    ("stack_index_keeps_hashes_apart", stack_index_keeps_hashes_apart),
    ("equal_stacks_have_equal_ids", equal_stacks_have_equal_ids),
    ("stacks_with_shared_callers_come_back_whole", stacks_with_shared_callers_come_back_whole),
    ("equal_blobs_have_equal_ids", equal_blobs_have_equal_ids),
    ("different_blobs_have_different_ids", different_blobs_have_different_ids),
];

/// Runs both at once, and returns what they return.
fn both<T: Send + 'static>(
    first: impl FnOnce() -> T + Send + 'static,
    second: impl FnOnce() -> T + Send + 'static,
) -> [T; 2] {
    let threads = [thread::spawn(first), thread::spawn(second)];
    threads.map(|thread| thread.join().unwrap())
}

/// The same with something that both share.
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

// SAFETY: that one thread sees what the other wrote is what the model is to show; loom runs one at a time.
unsafe impl Sync for Described {}
// SAFETY: as above.
unsafe impl Send for Described {}

fn address_map_shows_what_was_written_before() {
    let shared = Arc::new(Described { map: AddressMap::new(), description: Cell::new(0) });
    // Else the new table shows what was written before.
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

/// One bucket with two slots, and another table with as many: all addresses meet.
fn address_map_keeps_addresses_apart() {
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

fn ids_are_given_to_one_thread() {
    let ids = Arc::new(IdTable::<AtomicU64>::starting_with(1));
    ids.allocate_run(3);
    let take = |ids: &IdTable<AtomicU64>| {
        let lost = ids.allocate_run(2).unwrap();
        ids.free_run(lost, 2);
        let (one, _) = ids.allocate().unwrap();
        [one, ids.allocate().unwrap().0]
    };
    let mut taken = both_of(&ids, take, take).concat();
    taken.sort_unstable();
    taken.dedup();
    assert!(taken.len() == 4 && taken[0] > 3, "{taken:?}");
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

fn stack_index_keeps_hashes_apart() {
    let index = Arc::new(StackIndex::new());
    index.add(hash(1), id(11));
    let add = |index: &StackIndex| [2, 3].map(|number| index.add(hash(number.into()), id(10 + number)));
    let add_back = |index: &StackIndex| [3, 2].map(|number| index.add(hash(number.into()), id(10 + number)));
    both_of(&index, add, add_back);
    assert!((1..=3).all(|number| index.find(hash(number.into())) == Some(id(10 + number))));
    assert_eq!(index.find(hash(4)), None);
}

/// A stack named by letters, innermost first.
fn stack(names: &str) -> Vec<RawFrame> {
    names.bytes().map(|name| RawFrame::native(CodeAddress::return_address(name.into()))).collect()
}

/// Its id, and its frames as the thread that interned it sees them.
fn interned(table: &StackTable, names: &str) -> StackId {
    let id = table.intern(&stack(names)).unwrap();
    assert_eq!(table.frames(id).collect::<Vec<_>>(), stack(names), "{names}");
    id
}

/// A table that knows some frames, and the stack of the caller.
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

fn stacks_with_shared_callers_come_back_whole() {
    let table = table_with_frames();
    let [first, second] = both_of(&table, |table| interned(table, "xa"), |table| interned(table, "ya"));
    assert_ne!(first, second);
    assert_eq!([first, second].map(|id| table.parent(id)), [Some(interned(&table, "a")); 2]);
    assert_eq!([interned(&table, "xa"), interned(&table, "ya")], [first, second]);
}

/// Its number, and its bytes as the thread that interned it sees them.
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
