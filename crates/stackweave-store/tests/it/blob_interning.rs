//! Equal byte strings have equal ids, independent of the thread and of where they are cut.

use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;

use stackweave_core::BlobId;
use stackweave_store::BlobTable;
use stackweave_testkit::random::Random;

/// Returns a byte string from a limited set, so that equal ones occur, some far longer than others.
fn blob(random: &mut Random) -> Vec<u8> {
    let length = match random.byte_below(20) {
        0 => random.below(20_000),
        1..5 => random.below(300),
        _ => random.below(6),
    };
    let mut bytes = vec![random.byte_below(4); length];
    for _ in 0..random.below(3).min(length) {
        bytes[random.below(length)] = random.byte_below(3);
    }
    bytes
}

fn blobs(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut random = Random::new(seed);
    (0..count).map(|_| blob(&mut random)).collect()
}

/// Returns the bytes, cut at a few random places.
fn cut<'a>(random: &mut Random, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    for _ in 0..random.below(5) {
        let (part, behind) = rest.split_at(random.below(rest.len() + 1));
        parts.push(part);
        rest = behind;
    }
    parts.push(rest);
    parts
}

#[test]
fn blobs_keep_their_bytes_and_only_equal_ones_share_an_id() {
    for seed in 0..10 {
        let table = BlobTable::new();
        let mut random = Random::new(1000 + seed);
        let mut by_bytes: HashMap<Vec<u8>, BlobId> = HashMap::new();
        let mut by_id: HashMap<BlobId, Vec<u8>> = HashMap::new();
        for blob in blobs(seed, 3000) {
            let id = table.intern(&cut(&mut random, &blob)).unwrap();
            assert_eq!(table.get(id), Some(&blob[..]));
            assert_eq!(*by_bytes.entry(blob.clone()).or_insert(id), id);
            assert_eq!(*by_id.entry(id).or_insert_with(|| blob.clone()), blob);
        }
        assert!(by_bytes.len() > 500 && by_bytes.len() < 2500);
        assert_eq!(table.len() as usize, by_bytes.len());
        assert!(by_id.iter().all(|(id, blob)| table.get(*id) == Some(blob)));
        assert_eq!(table.stats().refused, 0);
    }
}

/// Starts eight threads, each of which interns the blobs that `is_its` selects, in its own order or in the same
/// order as another.
fn race(seed: u64, is_its: impl Fn(usize, usize) -> bool + Sync) {
    let table = BlobTable::new();
    let blobs = blobs(seed, 4000);
    let start = Barrier::new(8);
    let intern_all = |thread: usize| {
        let mut random = Random::new(thread as u64);
        start.wait();
        let from = if thread.is_multiple_of(2) { 0 } else { thread * 501 };
        let mut ids = vec![None; blobs.len()];
        for place in (from..blobs.len()).chain(0..from).filter(|place| is_its(thread, *place)) {
            ids[place] = table.intern(&cut(&mut random, &blobs[place]));
            assert_eq!(ids[place].and_then(|id| table.get(id)), Some(&blobs[place][..]));
        }
        ids
    };
    let mut ids: [Vec<Option<BlobId>>; 8] = Default::default();
    thread::scope(|scope| {
        let intern_all = &intern_all;
        for (thread, ids) in ids.iter_mut().enumerate() {
            scope.spawn(move || *ids = intern_all(thread));
        }
    });
    for (place, blob) in blobs.iter().enumerate() {
        let id = table.intern(&[blob]);
        assert_eq!(id.and_then(|id| table.get(id)), Some(&blob[..]));
        assert!(ids.iter().filter_map(|ids| ids[place]).all(|other| Some(other) == id));
    }
}

#[test]
fn eight_threads_agree_on_every_id() {
    for seed in 0..10 {
        race(100 + seed, |_, _| true);
    }
}

#[test]
fn eight_threads_with_different_blobs_do_not_disturb_each_other() {
    for seed in 0..10 {
        race(200 + seed, |thread, place| place % 8 == thread);
    }
}

#[test]
fn a_million_known_blobs_need_no_more_memory() {
    let table = BlobTable::new();
    let blobs = blobs(7, 1000);
    let ids: Vec<_> = blobs.iter().map(|blob| table.intern(&[blob])).collect();
    let before = table.stats();
    let (short, ids): (Vec<&[u8]>, Vec<_>) =
        blobs.iter().zip(&ids).filter(|(blob, _)| blob.len() < 300).map(|(blob, id)| (&blob[..], *id)).unzip();
    for round in 0..1_000_000 {
        let place = round % short.len();
        let (first, second) = short[place].split_at(round % (short[place].len() + 1));
        assert_eq!(table.intern(&[first, second]), ids[place]);
    }
    assert_eq!(table.stats(), before);
}

#[test]
fn two_hundred_thousand_blobs_keep_their_ids_and_few_bytes() {
    const BLOBS: u32 = 200_000;
    let table = BlobTable::new();
    let blob = |number: u32| [number.to_le_bytes(), (number * 7).to_be_bytes()].concat();
    let ids: Vec<BlobId> = (0..BLOBS).filter_map(|number| table.intern(&[&blob(number)])).collect();
    assert!(ids.iter().map(|id| id.get()).eq(1..=BLOBS));
    assert!((0..).zip(&ids).all(|(number, id)| table.get(*id) == Some(&blob(number))));
    assert!((0..).zip(&ids).all(|(number, id)| table.intern(&[&blob(number)]) == Some(*id)));
    let stats = table.stats();
    let bytes = stats.mapped_bytes / BLOBS as usize;
    assert!(bytes <= 64, "{bytes} bytes of address space for each blob of 8 bytes");
    // At most seven bytes are unused at each block's end.
    assert!((1_600_000..1_600_100).contains(&stats.used_bytes), "{stats:?}");
}

#[test]
fn blobs_may_be_longer_than_a_block() {
    let table = BlobTable::new();
    let mut random = Random::new(3);
    let long: Vec<u8> = (0..3_000_000).map(|_| random.byte_below(255)).collect();
    let short = table.intern(&[b"short"]);
    let id = table.intern(&[&long[..1_000_000], &long[1_000_000..]]).unwrap();
    assert_eq!(table.get(id), Some(&long[..]));
    assert_eq!((table.intern(&[&long]), table.intern(&[b"short"])), (Some(id), short));
}
