//! The map from addresses to numbers behaves like an ordinary map for each thread, independent of other threads.

use std::collections::{HashMap, HashSet};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

use stackweave_store::AddressMap;
use stackweave_testkit::random::Random;

#[test]
fn the_map_behaves_like_a_hash_map() {
    for seed in 0..10 {
        let (map, mut model) = (AddressMap::new(), HashMap::new());
        let mut random = Random::new(seed);
        let mut ever = HashSet::new();
        for _ in 0..200_000 {
            let address = 0x7f00_0000_0000 + random.below(30_000) as u64 * 16;
            match random.byte_below(4) {
                0 => {
                    let value = u32::from(random.byte_below(200)) + 1;
                    ever.insert(address);
                    assert_eq!(map.insert(address, value), Some(*model.entry(address).or_insert(value)));
                }
                1 => assert_eq!(map.remove(address), model.remove(&address)),
                _ => assert_eq!(map.get(address), model.get(&address).copied()),
            }
        }
        let stats = map.stats();
        assert_eq!((stats.live, stats.addresses as usize), (model.len() as u64, ever.len()));
        assert_eq!(stats.refused, 0);
    }
}

#[test]
fn any_number_except_zero_may_be_an_address() {
    let map = AddressMap::new();
    let addresses = || (0..64).flat_map(|bit| [1 << bit, (1 << bit) + 1, u64::MAX << bit, u64::MAX >> bit]);
    let mut model = HashMap::new();
    for (value, address) in (1..).zip(addresses()) {
        assert_eq!(map.insert(address, value), Some(*model.entry(address).or_insert(value)));
    }
    assert!(model.iter().all(|(address, value)| map.get(*address) == Some(*value)));
    assert_eq!((map.get(0), map.stats().addresses as usize), (None, model.len()));
}

#[test]
fn reinserted_addresses_need_no_more_memory() {
    let map = AddressMap::new();
    for address in (1..=1000).map(|number| number * 176) {
        map.insert(address, 1);
    }
    let before = map.stats();
    for round in 0..300_000 {
        let address = (round % 1000 + 1) * 176;
        assert!(map.remove(address).is_some());
        assert_eq!(map.insert(address, 5), Some(5));
    }
    let after = map.stats();
    assert_eq!((after.mapped_bytes, after.addresses, after.live), (before.mapped_bytes, 1000, 1000));
    assert_eq!(after.removed, 300_000);
}

#[test]
fn a_million_addresses_keep_their_values_and_few_bytes() {
    let map = AddressMap::new();
    let address = |number: u32| 0x7f12_0000_0030 + u64::from(number) * 208;
    for number in 1..=1_000_000 {
        assert_eq!(map.insert(address(number), number), Some(number));
    }
    assert!((1..=1_000_000).all(|number| map.get(address(number)) == Some(number)));
    let stats = map.stats();
    let bytes = stats.mapped_bytes / 1_000_000;
    assert!(bytes <= 70, "{bytes} bytes of address space for each address");
    assert_eq!((stats.live, stats.addresses), (1_000_000, 1_000_000));
}

#[test]
fn eight_threads_that_insert_the_same_address_get_the_same_value() {
    const ADDRESSES: u64 = 20_000;
    for _ in 0..5 {
        let map = AddressMap::new();
        let start = Barrier::new(8);
        let insert_all = |thread: u32| {
            start.wait();
            (1..=ADDRESSES).map(|number| map.insert(number * 32, thread + 1).unwrap()).collect::<Vec<_>>()
        };
        let values: Vec<Vec<u32>> = thread::scope(|scope| {
            let insert_all = &insert_all;
            let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || insert_all(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(values.iter().all(|others| *others == values[0]));
        assert!((1..=ADDRESSES).zip(&values[0]).all(|(number, value)| map.get(number * 32) == Some(*value)));
        assert_eq!((u64::from(map.stats().addresses), map.stats().live), (ADDRESSES, ADDRESSES));
    }
}

/// Each thread has its own objects, at addresses between those of the others. For each, the map behaves as if it
/// were alone.
#[test]
fn an_address_that_one_thread_uses_behaves_as_in_an_ordinary_map() {
    let map = AddressMap::new();
    let run = |thread: u64| {
        let mut random = Random::new(thread);
        let mut model: HashMap<u64, u32> = HashMap::new();
        for round in 1..100_000 {
            let address = (random.below(3000) as u64 * 8 + thread + 1) * 16;
            match random.byte_below(3) {
                0 => assert_eq!(map.insert(address, round), Some(*model.entry(address).or_insert(round))),
                1 => assert_eq!(map.remove(address), model.remove(&address)),
                _ => assert_eq!(map.get(address), model.get(&address).copied()),
            }
        }
        assert!(model.iter().all(|(address, value)| map.get(*address) == Some(*value)));
        model.len() as u64
    };
    let live: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(map.stats().live, live);
    assert!(map.stats().addresses <= 8 * 3000);
}

/// Of threads that remove the same value, one gets it; that thread sees what was written before the insertion.
#[test]
fn a_value_is_removed_once_and_publishes_earlier_writes() {
    const ROUNDS: u32 = 20_000;
    let map = AddressMap::new();
    let written: Vec<AtomicU64> = (0..=ROUNDS).map(|_| AtomicU64::new(0)).collect();
    let removed: Vec<AtomicU32> = (0..=ROUNDS).map(|_| AtomicU32::new(0)).collect();
    let done = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) == 0 {
                    if let Some(value) = map.get(4096) {
                        assert_eq!(written[value as usize].load(Ordering::Relaxed), u64::from(value) * 3);
                    }
                    if let Some(value) = map.remove(4096) {
                        assert_eq!(written[value as usize].load(Ordering::Relaxed), u64::from(value) * 3);
                        assert_eq!(removed[value as usize].fetch_add(1, Ordering::Relaxed), 0);
                    }
                }
            });
        }
        for round in 1..=ROUNDS {
            written[round as usize].store(u64::from(round) * 3, Ordering::Relaxed);
            while map.insert(4096, round) != Some(round) {}
        }
        done.store(1, Ordering::Relaxed);
    });
    let last = map.remove(4096).map_or(0, u64::from);
    assert!(last == 0 || last == u64::from(ROUNDS));
    assert!(removed[1..ROUNDS as usize].iter().all(|count| count.load(Ordering::Relaxed) == 1));
    let stats = map.stats();
    assert_eq!((stats.addresses, stats.live, stats.removed), (1, 0, u64::from(ROUNDS)));
}
