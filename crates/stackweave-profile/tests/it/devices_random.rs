//! Random histories of devices, compared with a simple model.

use std::collections::HashMap;
use std::ops::Range;

use stackweave_profile::memory::{DeviceHistory, DevicePoint, read_devices};
use stackweave_tapes::devices::{DeviceStep, DeviceTape};
use stackweave_testkit::random::Random;

const PAGE: u64 = 64;
const POOLS: [u64; 3] = [0, 4, 1 << 63 | 2];

fn step(random: &mut Random) -> DeviceStep {
    let (address, page) = (0x1000 + 16 * random.number_below(30), 0x8000 + PAGE * random.number_below(20));
    let (size, pages, pool) = (1 + random.number_below(500), PAGE * (1 + random.number_below(6)), random.pick(&POOLS));
    match random.number_below(20) {
        0..6 => DeviceStep::Allocate { address, size, pool },
        6 => DeviceStep::Free { address },
        7..11 => DeviceStep::Request { address },
        11..14 => DeviceStep::Complete { address },
        14 => DeviceStep::Segment { address: page, size: pages, pool },
        15 => DeviceStep::SegmentPresent { address: page, size: pages, pool },
        16 => DeviceStep::SegmentMap { address: page, size: pages, pool },
        17 | 18 => DeviceStep::SegmentFree { address: page, size: pages },
        _ => DeviceStep::SegmentUnmap { address: page, size: pages },
    }
}

/// The state of one device: blocks by address, and each page.
#[derive(Default)]
struct Model {
    blocks: HashMap<u64, (u64, u64)>,
    pending: HashMap<u64, (u64, u64)>,
    pages: HashMap<u64, u64>,
}

impl Model {
    fn add(&mut self, step: &DeviceStep) {
        let pages = |address: u64, size: u64| (address..address + size).step_by(usize::try_from(PAGE).unwrap());
        match *step {
            DeviceStep::Allocate { address, size, pool } => {
                self.blocks.insert(address, (size, pool));
                self.pending.remove(&address);
            }
            DeviceStep::Free { address } => drop(self.blocks.remove(&address)),
            DeviceStep::Request { address } => {
                self.pending.extend(self.blocks.remove(&address).map(|block| (address, block)));
            }
            DeviceStep::Complete { address } => drop(self.pending.remove(&address)),
            DeviceStep::Segment { address, size, pool }
            | DeviceStep::SegmentPresent { address, size, pool }
            | DeviceStep::SegmentMap { address, size, pool } => {
                self.pages.extend(pages(address, size).map(|page| (page, pool)));
            }
            DeviceStep::SegmentFree { address, size } | DeviceStep::SegmentUnmap { address, size } => {
                for page in pages(address, size) {
                    self.pages.remove(&page);
                }
            }
            ref other => panic!("{other:?}"),
        }
    }

    /// Returns the current figures, of a pool or of all.
    fn point(&self, time_ns: u64, of: Option<u64>) -> DevicePoint {
        let takes = |pool: &u64| of.is_none_or(|of| of == *pool);
        let sum = |blocks: &HashMap<u64, (u64, u64)>| {
            blocks.values().filter(|(_, pool)| takes(pool)).map(|(size, _)| size).sum()
        };
        let reserved = PAGE * self.pages.values().filter(|pool| takes(pool)).count() as u64;
        DevicePoint { time_ns, allocated: sum(&self.blocks), pending: sum(&self.pending), reserved }
    }
}

/// Returns the figures after each step in the range, and at its start.
fn moments(steps: &[(u64, i64, DeviceStep)], device: i64, range: &Range<u64>, of: Option<u64>) -> Vec<DevicePoint> {
    let mut model = Model::default();
    let mut points = Vec::new();
    let of_device = steps.iter().filter(|(time, number, _)| *number == device && *time < range.end);
    for (time, _, step) in of_device {
        if *time >= range.start && points.is_empty() {
            points.push(model.point(range.start, of));
        }
        model.add(step);
        if *time >= range.start {
            points.push(model.point(*time, of));
        }
    }
    if points.is_empty() {
        points.push(model.point(range.start, of));
    }
    points
}

fn tape(random: &mut Random, count: u64, distance: u64) -> (DeviceTape, Vec<(u64, i64, DeviceStep)>) {
    let mut tape = DeviceTape::new();
    let mut steps = Vec::new();
    for number in 0..count {
        let (time, device, step) = (number * distance, i64::try_from(random.number_below(2)).unwrap(), step(random));
        tape.step(1 + u32::try_from(random.number_below(3)).unwrap(), time, device, &step);
        steps.push((time, device, step));
    }
    (tape, steps)
}

/// Returns the figures at a time: those of the last point.
fn at(points: &[DevicePoint], time: u64) -> DevicePoint {
    let place = points.partition_point(|point| point.time_ns <= time) - 1;
    DevicePoint { time_ns: time, ..points[place] }
}

fn highest(points: &[DevicePoint], of: fn(&DevicePoint) -> u64) -> DevicePoint {
    points.iter().copied().reduce(|best, next| if of(&next) > of(&best) { next } else { best }).unwrap()
}

fn check(found: &DeviceHistory, steps: &[(u64, i64, DeviceStep)], range: &Range<u64>) {
    let all = moments(steps, found.device, range, None);
    assert_eq!(found.peak, highest(&all, |point| point.allocated));
    assert_eq!(found.reserved_peak, highest(&all, |point| point.reserved));
    for pool in &found.pools {
        let all = moments(steps, found.device, range, Some(pool.pool));
        assert_eq!(pool.peak.allocated, highest(&all, |point| point.allocated).allocated);
        assert_eq!(at(&pool.points, range.end), at(&all, range.end));
    }
}

#[test]
fn every_moment_of_a_short_history_equals_the_model() {
    for seed in 1..=12 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let (tape, steps) = tape(&mut random, 390, 10);
        let process = tape.process();
        for number in 0..10 {
            let start = random.number_below(3_000);
            let range = if number == 0 { 0..3_891 } else { start..start + 1 + random.number_below(3_891 - start) };
            let selected = (number > 0).then(|| range.clone());
            for found in read_devices(&process, selected, &mut |_| {}).unwrap() {
                check(&found, &steps, &range);
                let pools = found.pools.iter().map(|pool| (Some(pool.pool), &pool.points));
                for (pool, points) in std::iter::once((None, &found.points)).chain(pools) {
                    let all = moments(&steps, found.device, &range, pool);
                    for time in range.clone().step_by(5) {
                        assert_eq!(at(points, time), at(&all, time), "{range:?} {pool:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_long_history_keeps_its_highest_moments_in_few_points() {
    for seed in 1..=3 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let (tape, steps) = tape(&mut random, 15_000, 1_000);
        let range = 0..14_999_001;
        for found in read_devices(&tape.process(), None, &mut |_| {}).unwrap() {
            check(&found, &steps, &range);
            assert!((2_000..9_000).contains(&found.points.len()), "{}", found.points.len());
            let all = moments(&steps, found.device, &range, None);
            assert!(found.points.iter().all(|point| at(&all, point.time_ns) == *point));
            assert_eq!(highest(&found.points, |point| point.allocated), found.peak);
            assert_eq!(highest(&found.points, |point| point.reserved), found.reserved_peak);
        }
    }
}
