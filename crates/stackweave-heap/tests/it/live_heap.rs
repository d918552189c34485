//! Live memory, compared with a model that has each page of a mapping by itself.

use std::collections::{BTreeMap, HashMap};

use stackweave_heap::{Kept, LiveHeap};
use stackweave_testkit::random::Random;

const PAGE: u64 = 4096;

/// By page: the number of the mapping, and the end of its bytes.
type Pages = BTreeMap<u64, (u64, u64)>;

#[derive(Default)]
struct Naive {
    /// The size and the number of each block.
    blocks: BTreeMap<u64, (u64, u64)>,
    pages: Pages,
    /// The address of each thread's last free, and what it freed.
    last: HashMap<u32, (u64, Freed)>,
}

enum Freed {
    Block((u64, u64)),
    /// The freed pages of each part that was live.
    Pages(Vec<Pages>),
}

impl Naive {
    /// Returns the live parts of mappings: the start, the end and the number of each.
    fn parts(pages: &Pages) -> Vec<(u64, u64, u64)> {
        let mut parts: Vec<(u64, u64, u64)> = Vec::new();
        for (page, (number, end)) in pages {
            match parts.last_mut() {
                Some(last) if last.1 == page * PAGE && last.2 == *number => last.1 = *end,
                _ => parts.push((page * PAGE, *end, *number)),
            }
        }
        parts
    }

    fn unmap(&mut self, address: u64, size: u64) -> Vec<Pages> {
        let pages = address / PAGE..(address + size).div_ceil(PAGE);
        let mut gone: Vec<Pages> = Vec::new();
        for (start, end, _) in Self::parts(&self.pages) {
            let of_part = pages.start.max(start / PAGE)..pages.end.min(end.div_ceil(PAGE));
            let freed: Pages = of_part.filter_map(|page| Some((page, self.pages.remove(&page)?))).collect();
            gone.extend(Some(freed).filter(|freed| !freed.is_empty()));
        }
        gone
    }

    /// Returns how many blocks and parts are live again.
    fn keep(&mut self, thread: u32, address: u64) -> usize {
        if self.last.get(&thread).is_none_or(|(freed, _)| *freed != address) {
            return 0;
        }
        match self.last.remove(&thread) {
            Some((_, Freed::Block(block))) if !self.blocks.contains_key(&address) => {
                self.blocks.insert(address, block);
                1
            }
            Some((_, Freed::Pages(parts))) => {
                let is_free = |part: &&Pages| part.keys().all(|page| !self.pages.contains_key(page));
                let back: Vec<&Pages> = parts.iter().filter(is_free).collect();
                for part in &back {
                    self.pages.extend(part.iter());
                }
                back.len()
            }
            _ => 0,
        }
    }
}

#[test]
fn it_equals_a_model_of_pages() {
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let (mut live, mut naive) = (LiveHeap::<u64>::default(), Naive::default());
        for number in 0..500_u64 {
            let thread = random.below(3) as u32;
            let address = (1 + random.below(12) as u64) * PAGE;
            let size = (random.below(5) as u64 * PAGE).saturating_sub([0, 100][random.below(2)]);
            match random.below(6) {
                0 => {
                    let old = live.allocate(address, size, number).unwrap();
                    assert_eq!(old.map(|old| (old.size, old.value)), naive.blocks.insert(address, (size, number)));
                }
                1 => {
                    let freed = live.free(thread, address, |_| ()).map(|(block, ())| (block.size, block.value));
                    let expected = naive.blocks.remove(&address);
                    assert_eq!(freed, expected, "seed {seed}");
                    match expected {
                        Some(block) => naive.last.insert(thread, (address, Freed::Block(block))),
                        None => naive.last.remove(&thread),
                    };
                }
                2 => {
                    live.map(address, size, number);
                    naive.unmap(address, size);
                    for page in address / PAGE..(address + size).div_ceil(PAGE) {
                        naive.pages.insert(page, (number, ((page + 1) * PAGE).min(address + size)));
                    }
                }
                3 => {
                    let cuts = live.unmap(thread, address, size, |_| ());
                    let mut gone = naive.unmap(address, size);
                    let of_page = |pages: &Pages| pages.keys().next().copied();
                    gone.sort_by_key(of_page);
                    let bounds = |(cut, ()): &(stackweave_heap::Cut<u64>, ())| (cut.gone.start, cut.gone.end);
                    let mut found: Vec<_> = cuts.iter().map(bounds).collect();
                    found.sort_unstable();
                    let expected = gone.iter().flat_map(Naive::parts).map(|(start, end, _)| (start, end));
                    assert_eq!(found, expected.collect::<Vec<_>>(), "seed {seed}");
                    naive.last.insert(thread, (address, Freed::Pages(gone)));
                }
                _ => {
                    let back = match live.keep(thread, address) {
                        Kept::Block(..) => 1,
                        Kept::Ranges(parts) => parts.len(),
                        Kept::Nothing | Kept::Unknown => 0,
                    };
                    assert_eq!(back, naive.keep(thread, address), "seed {seed}, event {number}");
                }
            }
            let parts: Vec<_> = live.ranges().map(|part| (part.start, part.end, part.value)).collect();
            assert_eq!(parts, Naive::parts(&naive.pages), "seed {seed}, event {number}");
            let blocks: BTreeMap<_, _> = live.blocks().map(|(at, block)| (at, (block.size, block.value))).collect();
            assert_eq!(blocks, naive.blocks, "seed {seed}, event {number}");
        }
    }
}
