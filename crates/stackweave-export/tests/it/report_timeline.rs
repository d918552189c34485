//! The timeline of a report has every span once, and segments for those that are too short to be drawn.

use std::collections::BTreeMap;

use stackweave_core::RawFrame;
use stackweave_export::{ExportOptions, Format, export};
use stackweave_profile::{AggregateOptions, Measure, aggregate};
use stackweave_recording::Recording;
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::{Tape, recording_of, span};
use stackweave_testkit::folder::Folder;
use stackweave_testkit::random::Random;

use crate::common::memory::memory;
use crate::common::report::Page;
use crate::common::timelines::{Segment, TimelineSpan, Track, tracks};
use crate::common::traced::{random_traced, traced};

fn page(recording: &Recording) -> Page {
    Page::of(recording, &ExportOptions::default())
}

/// The actions of a thread, and the spans that are expected.
struct Thread {
    number: u32,
    now: u64,
    open: Vec<(u64, usize)>,
    expected: Vec<TimelineSpan>,
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

impl Thread {
    fn new(number: u32) -> Self {
        Self { number, now: 0, open: Vec::new(), expected: Vec::new() }
    }

    fn begin(&mut self, tape: &mut Tape, time: u64, name: usize) {
        self.now = self.now.max(time);
        tape.begin((self.number, time), span(NAMES[name]));
        self.open.push((self.now, name));
    }

    fn end(&mut self, tape: &mut Tape, time: u64) {
        self.now = self.now.max(time);
        tape.end((self.number, time));
        self.close(0);
    }

    fn close(&mut self, flags: u64) {
        let Some((began, name)) = self.open.pop() else { return };
        let (depth, name) = (self.open.len() as u64, NAMES[name].to_owned());
        self.expected.push(TimelineSpan { began, duration: self.now - began, depth, name, flags, details: None });
    }

    /// Returns the spans. Those that are open at the end of the recording end with the thread's last event, without a
    /// recorded end.
    fn finish(mut self) -> Vec<TimelineSpan> {
        while !self.open.is_empty() {
            self.close(1);
        }
        self.expected.sort();
        self.expected
    }

    fn step(&mut self, tape: &mut Tape, random: &mut Random) {
        let unit = [0, 1, 30, 900, 5_000, 100_000, 3_000_000, 90_000_000][random.below(8).min(random.below(8))];
        let time = match random.below(50) {
            0 => self.now.saturating_sub(500),
            _ => self.now + random.bits() % (unit + 1),
        };
        if random.below(self.open.len() + 4) < 4 && random.below(2) == 0 {
            self.begin(tape, time, random.below(NAMES.len()));
        } else {
            self.end(tape, time);
        }
    }
}

/// Records threads that begin and end spans of every length.
fn program(seed: u64, steps: usize) -> (Recording, Vec<Vec<TimelineSpan>>) {
    let mut random = Random::new(seed);
    let mut tape = Tape::new();
    let mut threads = [1, 2, 3].map(Thread::new);
    for thread in &threads {
        tape.thread(thread.number, 100 + thread.number, "thread");
    }
    for step in 0..steps {
        threads[random.below(3)].step(&mut tape, &mut random);
        if step % 500 == 0 {
            (1..=3).for_each(|number| tape.flush(number));
        }
    }
    (tape.recording(), threads.map(Thread::finish).into())
}

fn all(track: &Track) -> Vec<TimelineSpan> {
    let mut all: Vec<TimelineSpan> = track.levels.iter().flatten().cloned().collect();
    all.sort();
    all
}

#[test]
fn every_span_is_there_once_in_the_level_of_its_duration() {
    for seed in 0..20 {
        let (recording, expected) = program(seed, 3_000);
        let page = page(&recording);
        let tracks = tracks(&page);
        assert_eq!(tracks.len(), 3, "seed {seed}");
        for (track, expected) in tracks.iter().zip(&expected) {
            assert!(all(track) == *expected, "seed {seed}, thread {}", track.thread);
            assert_eq!(track.spans, expected.len() as u64);
            assert_eq!(track.depth, expected.iter().map(|of| of.depth + 1).max().unwrap());
            for (level, spans) in track.levels.iter().enumerate() {
                let upper = track.min_durations.get(level + 1).copied().unwrap_or(u64::MAX);
                assert!(
                    spans.iter().all(|of| (track.min_durations[level]..upper).contains(&of.duration)),
                    "seed {seed}"
                );
            }
        }
    }
}

/// Returns the short spans that a segment stands for.
fn inside<'s>(segment: &Segment, spans: &[&'s TimelineSpan]) -> Vec<&'s TimelineSpan> {
    let is_inside =
        |of: &&&TimelineSpan| of.began >= segment.began && of.began + of.duration <= segment.began + segment.extent;
    spans.iter().filter(is_inside).copied().collect()
}

fn check_segments(track: &Track, level: usize, hint: &str) {
    let (min_durations, segments) = (track.min_durations[level], &track.dense[level]);
    let shorter: Vec<TimelineSpan> = all(track).into_iter().filter(|of| of.duration < min_durations).collect();
    for depth in 0..track.depth {
        let spans: Vec<&TimelineSpan> = shorter.iter().filter(|of| of.depth == depth).collect();
        let segments: Vec<&Segment> = segments.iter().filter(|segment| segment.depth == depth).collect();
        let sums = segments
            .iter()
            .map(|segment| (segment.calls, segment.busy))
            .fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        let busy: u64 = spans.iter().map(|of| of.duration).sum();
        assert_eq!(sums, (spans.len() as u64, busy), "{hint}, level {level}, depth {depth}");
        assert!(segments.iter().all(|segment| segment.extent <= 4 * min_durations), "{hint}");
        assert!(segments.windows(2).all(|pair| pair[0].began + pair[0].extent <= pair[1].began), "{hint}");
        let covered = |of: &&&TimelineSpan| segments.iter().any(|segment| !inside(segment, &[**of]).is_empty());
        assert!(spans.iter().all(|of| covered(&of)), "{hint}");
        for segment in segments {
            check_name(segment, &spans, hint);
        }
    }
}

/// Asserts that a segment has the name of the function with more than half of its time, and none of one with little.
fn check_name(segment: &Segment, spans: &[&TimelineSpan], hint: &str) {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    let inside = inside(segment, spans);
    if inside.len() as u64 != segment.calls {
        return; // Spans without a duration at the edges may belong to two segments.
    }
    for of in &inside {
        *times.entry(&of.name).or_default() += of.duration.max(1);
    }
    let whole: u64 = times.values().sum();
    if let Some((most, _)) = times.iter().find(|(_, time)| **time * 2 > whole) {
        assert!(segment.name.as_deref().is_none_or(|name| name == *most), "{hint}: {segment:?} {times:?}");
        assert!(times[most] * 8 < whole * 7 || segment.name.is_some(), "{hint}: {segment:?} {times:?}");
    }
    if let Some(name) = &segment.name {
        assert!(times[name.as_str()] * 4 + 4 >= whole / 2, "{hint}: {segment:?} {times:?}");
    }
}

#[test]
fn segments_stand_for_all_shorter_spans() {
    for seed in 100..110 {
        let (recording, _) = program(seed, 1_500);
        for track in tracks(&page(&recording)) {
            assert!(track.dense[0].is_empty());
            (1..track.min_durations.len()).for_each(|level| check_segments(&track, level, &format!("seed {seed}")));
        }
    }
}

/// Records a second with a number of calls of length `duration`, and with equal gaps.
fn calls(count: u64, duration: u64) -> Recording {
    let mut tape = Tape::new();
    tape.thread(1, 101, "main");
    tape.begin((1, 0), span("main"));
    for call in 0..count {
        tape.begin((1, call * 2 * duration), span("f"));
        tape.end((1, call * 2 * duration + duration));
        if call % 1_000 == 0 {
            tape.flush(1);
        }
    }
    tape.end((1, 1_000_000_000));
    tape.recording()
}

#[test]
fn many_spans_are_in_several_tiles_with_little_overlap() {
    let recording = calls(50_000, 300);
    let page = page(&recording);
    let tiles = page.head["timeline"]["tracks"][0]["levels"][0].as_array().unwrap();
    let tiles: Vec<Vec<u64>> = tiles.chunks(4).map(|of| of.iter().map(|of| of.as_u64().unwrap()).collect()).collect();
    assert_eq!(tiles.iter().map(|tile| tile[3]).collect::<Vec<_>>(), [16_384, 16_384, 16_384, 848]);
    assert!(tiles.windows(2).all(|pair| pair[0][2] <= pair[1][1]), "{tiles:?}");
    let tracks = tracks(&page);
    let segments = &tracks[0].dense[1];
    assert!(segments.iter().all(|segment| segment.name.as_deref() == Some("f")));
    assert!((7_000..8_000).contains(&segments.len()), "{}", segments.len());
    assert_eq!((tracks[0].spans, tracks[0].levels[0].len()), (50_001, 50_000));
}

#[test]
fn a_segment_without_a_successor_is_in_a_tile_of_its_time() {
    let mut tape = Tape::new();
    tape.thread(1, 101, "main");
    let once = [(0, "outer", 200_000_000_u64), (10, "inner", 20)];
    tape.begin((1, once[0].0), span(once[0].1));
    tape.begin((1, once[1].0), span("between"));
    tape.begin((1, once[1].0), span(once[1].1));
    tape.end((1, once[1].2));
    tape.end((1, once[1].2));
    for call in 1..40_000 {
        tape.begin((1, call * 5_000), span("f"));
        tape.end((1, call * 5_000 + 10));
    }
    tape.end((1, once[0].2));
    let page = page(&tape.recording());
    let tiles = page.head["timeline"]["tracks"][0]["dense"][1].as_array().unwrap();
    let latest_begin = tiles.chunks(4).map(|tile| tile[1].as_u64().unwrap()).max();
    assert!(tiles.len() >= 8 && latest_begin > Some(100_000_000), "{tiles:?}");
}

#[test]
fn deep_recursion_keeps_its_depth() {
    let mut tape = Tape::new();
    tape.thread(1, 101, "main");
    (0..5_000).for_each(|depth| tape.begin((1, depth * 3), span("f")));
    (0..5_000).for_each(|depth| tape.end((1, 100_000 + depth * 2)));
    let tracks = tracks(&page(&tape.recording()));
    assert_eq!((tracks[0].depth, tracks[0].spans), (5_000, 5_000));
    let spans = all(&tracks[0]);
    assert!(spans.iter().enumerate().all(|(depth, of)| (of.depth, of.began) == (depth as u64, depth as u64 * 3)));
}

#[test]
fn details_of_spans_are_included() {
    let mut tape = Tape::new();
    tape.thread(1, 101, "main");
    tape.begin_with((1, 10), span("with"), &[], r#"{"size": 3}"#);
    tape.begin((1, 20), span("without"));
    tape.end((1, 30));
    tape.end((1, 40));
    tape.begin_with((1, 50), span("with"), &[], r#"{"size": 3}"#);
    tape.instant((1, 60), span("now"), &[]);
    let tracks = tracks(&page(&tape.recording()));
    let spans = all(&tracks[0]);
    let rows: Vec<_> = spans.iter().map(|of| (of.name.as_str(), of.flags, of.details.as_deref())).collect();
    let size = Some(r#"{"size":3}"#);
    assert_eq!(rows, [("with", 0, size), ("without", 0, None), ("with", 1, size)]);
    assert_eq!(tracks[0].instants, [(60, "now".to_owned())]);
    assert_eq!((tracks[0].began, tracks[0].ended), (10, 60));
}

#[test]
fn counters_have_their_values_in_the_order_of_time() {
    let process = |pid, ticks| {
        let mut tape = Tape::started(&ProcessStart { pid, ..ProcessStart::default() });
        tape.thread(1, pid, "main");
        tape.thread(2, pid + 1, "other");
        tape.begin((1, 0), span("f"));
        tape.counter((1, ticks), span("queue"), 2.5);
        tape.counter((2, ticks + 5), span("queue"), 1.0);
        tape.counter((1, ticks + 9), span("queue"), -3.0);
        tape.end((1, ticks + 10));
        tape
    };
    let page = page(&recording_of(vec![process(10, 100), process(20, 1_000)]));
    let counters = page.head["timeline"]["counters"].as_array().unwrap();
    let rows = counters.iter().map(|of| (of["name"].as_str().unwrap(), of["process"].as_u64().unwrap()));
    assert_eq!(rows.collect::<Vec<_>>(), [("queue", 0), ("queue", 1)]);
    let values = page.json(&counters[0]["block"]);
    assert_eq!(values, serde_json::json!({"times": [100, 105, 109], "values": [2.5, 1.0, -3.0]}));
}

#[test]
fn memory_has_a_timeline_only_with_spans() {
    let page = page(&memory().recording());
    assert_eq!(tracks(&page)[0].spans, 1);
    let mut tape = Tape::new();
    tape.thread(1, 101, "main");
    tape.allocate((1, 10), (0x1000, 16), &[span("f")]);
    let without = Page::of(&tape.recording(), &ExportOptions::default());
    assert!(without.head["timeline"].is_null() && !without.head["memory"].is_null());
}

#[test]
fn lost_events_end_open_spans() {
    let mut tape = Tape::new();
    tape.thread(1, 101, "main");
    let frames: [RawFrame; 2] = ["outer", "inner"].map(span);
    tape.begin((1, 10), frames[0]);
    tape.begin((1, 20), frames[1]);
    tape.lose((1, 30));
    tape.end((1, 40));
    tape.begin((1, 50), frames[1]);
    tape.end((1, 60));
    let (folder, options) = (Folder::new(), ExportOptions::default());
    let done =
        export(&tape.recording(), Format::Report, &folder.file("x.html"), &options, (None, &mut |_| {})).unwrap();
    assert_eq!(done.missing.len(), 1);
    let page = Page::read(&std::fs::read_to_string(folder.file("x.html")).unwrap());
    let spans = all(&tracks(&page)[0]);
    let rows: Vec<_> = spans.iter().map(|of| (of.began, of.duration, of.depth, of.flags)).collect();
    assert_eq!(rows, [(10, 10, 0, 1), (20, 0, 1, 1), (50, 10, 0, 0)]);
}

/// The calls of trees are spans that were not open before: trees of a time range count like that.
#[test]
fn spans_that_were_open_before_are_no_calls() {
    let recording = traced().recording();
    let spans = all(&tracks(&page(&recording))[0]);
    let was_open: Vec<_> = spans.iter().filter(|of| of.flags & 4 != 0).map(|of| of.name.as_str()).collect();
    assert_eq!((was_open, spans.len()), (vec!["main"], 8));
    for seed in 1..6 {
        let recording = random_traced(seed, 1500).recording();
        let options = AggregateOptions { measure: Some(Measure::WallTime), ..AggregateOptions::default() };
        let profile = aggregate(recording.processes(), &options, None, &mut |_| {}).unwrap().merged();
        let calls: u64 = profile.tree().nodes().iter().map(|node| node.cost.calls).sum();
        let spans: Vec<TimelineSpan> = tracks(&page(&recording)).iter().flat_map(all).collect();
        let shown = spans.iter().filter(|of| of.flags & 4 == 0).count() as u64;
        assert_eq!(shown, calls);
    }
}

#[test]
fn samples_of_a_thread_without_spans_become_spans() {
    let mut tape = Tape::new();
    tape.thread(1, 101, "sampled");
    tape.thread(2, 102, "both");
    let [main, work, rest] = ["main", "work", "rest"].map(|name| tape.python(name, "/app/x.py", 1));
    for (step, (inner, line)) in [(work, 5), (work, 6), (rest, 7), (rest, 7)].into_iter().enumerate() {
        let time = 1_000 * (step as u64 + 1);
        tape.sample((1, time), &[Tape::at(inner, line), Tape::at(main, line)], 1);
        tape.sample((2, time), &[Tape::at(inner, line), Tape::at(main, line)], 1);
    }
    tape.begin((2, 5_000), span("call"));
    tape.end((2, 6_000));
    let tracks = tracks(&page(&tape.recording()));
    let rows =
        |track| -> Vec<_> { all(track).into_iter().map(|of| (of.began, of.duration, of.depth, of.name)).collect() };
    let last = all(&tracks[0])[0].duration - 3_000;
    assert!((1_000..=1_250).contains(&last), "{last}");
    let [main, work, rest] = ["main", "work", "rest"].map(str::to_owned);
    let expected = [(1_000, 3_000 + last, 0, main), (1_000, 2_000, 1, work), (3_000, 1_000 + last, 1, rest)];
    assert_eq!(rows(&tracks[0]), expected);
    assert_eq!(rows(&tracks[1]), [(5_000, 1_000, 0, "call".to_owned())]);
}
