//! Frames are hidden by default without losing their costs.

use std::collections::BTreeMap;

use stackweave_core::{Module, RawFrame};
use stackweave_profile::{AggregateOptions, CodeOrigin, Filter, FrameKind, Pattern, Profile, Statistics, View};
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::{Tape, native, span};
use stackweave_testkit::random::Random;

use crate::common::recording::{self, TapeExt as _, path, paths};

const LIBPYTHON: u64 = 0x10_0000;
const LIBC: u64 = 0x20_0000;
const OWN: u64 = 0x30_0000;

fn tape() -> Tape {
    let mut tape = Tape::new();
    let places = [
        (LIBPYTHON, "/usr/lib/libpython3.11.so.1.0"),
        (LIBC, "/lib/x86_64-linux-gnu/libc.so.6"),
        (OWN, "/srv/me/app/fast.so"),
    ];
    for (start, path) in places {
        tape.module(Module { path: path.into(), build_id: None, bias: start, start, end: start + 0x1_0000 });
    }
    tape
}

/// Returns the frames of the tests, by one letter each.
fn frames(tape: &mut Tape) -> BTreeMap<char, RawFrame> {
    let files = [
        ('m', "main", "/srv/me/app/main.py"),
        ('p', "handle", "/srv/me/app/web.py"),
        ('d', "dumps", "/usr/lib/python3.11/json/__init__.py"),
        ('e', "JSONEncoder.encode", "/usr/lib/python3.11/json/encoder.py"),
        ('s', "Session.get", "/venv/lib/python3.11/site-packages/web/session.py"),
        ('i', "_find_and_load", "<frozen importlib._bootstrap>"),
    ];
    let mut frames = BTreeMap::new();
    for (letter, name, file) in files {
        frames.insert(letter, Tape::at(tape.python(name, file, 1), 5));
    }
    frames.extend([('V', native(LIBPYTHON + 0x100)), ('q', native(LIBC + 0x200)), ('n', native(OWN + 0x300))]);
    frames.insert('l', span("phase"));
    frames
}

/// Builds a profile of stacks, outermost letter first.
fn sampled(stacks: &[(&str, i64)]) -> Profile {
    let profile = |view| sampled_as(stacks, view);
    let whole = profile(None);
    for view in [View::default(), View::all().clone()] {
        let (built, hidden) = (profile(Some(view.clone())), whole.view(&view));
        assert_eq!((paths(&built), built.hidden()), (paths(&hidden), hidden.hidden()));
        assert_eq!((built.functions().functions(), built.total()), (hidden.functions().functions(), whole.total()));
        assert!(built.tree() == hidden.tree() && built.has_frames());
    }
    whole
}

fn sampled_as(stacks: &[(&str, i64)], view: Option<View>) -> Profile {
    let mut tape = tape();
    let frames = frames(&mut tape);
    for (time, (stack, weight)) in (0..).zip(stacks) {
        let stack: Vec<RawFrame> = stack.chars().rev().map(|letter| frames[&letter]).collect();
        tape.sample((1, time), &stack, *weight);
    }
    tape.profile(&AggregateOptions { view, ..AggregateOptions::default() })
}

#[test]
fn libraries_are_visible_where_they_are_called_and_interpreters_never() {
    let profile =
        sampled(&[("VmVdVeVq", 1), ("VmVd", 10), ("VmVqV", 100), ("VmVsVpVe", 1000), ("Vn", 10_000), ("mlq", 5)]);
    let expected = [
        path("fast.so+0x300", 1, 10_000, 10_000),
        path("main", 0, 0, 1116),
        path("main;Session.get", 0, 0, 1000),
        path("main;Session.get;handle", 0, 0, 1000),
        path("main;Session.get;handle;JSONEncoder.encode", 1, 1000, 1000),
        // Calls inside the library are added to it, and the interpreter's loop to its caller.
        path("main;dumps", 2, 11, 11),
        path("main;libc.so.6+0x200", 1, 100, 100),
        path("main;phase", 0, 0, 5),
        path("main;phase;libc.so.6+0x200", 1, 5, 5),
    ];
    let view = profile.view(&View::default());
    assert_eq!(paths(&view), expected);
    assert_eq!((view.total(), view.without_frame()), (profile.total(), 0));
    let all = profile.view(&View { show_all: true, ..View::default() });
    assert_eq!(paths(&all), paths(&profile));
}

#[test]
fn costly_functions_inside_libraries_are_visible_if_libraries_take_most_of_the_time() {
    // Of 1000, 760 are hidden. Session.get takes less than 2 %, and the interpreter's are never visible.
    let stacks = [("mdVe", 700), ("mdeqV", 1), ("mdesq", 20), ("mdes", 19), ("md", 40), ("m", 200), ("mdeV", 20)];
    let profile = sampled(&stacks);
    let view = View::default();
    let expected = [
        path("main", 1, 200, 1000),
        path("main;dumps", 1, 40, 800),
        path("main;dumps;JSONEncoder.encode", 3, 739, 760),
        path("main;dumps;JSONEncoder.encode;libc.so.6+0x200", 2, 21, 21),
    ];
    assert_eq!(paths(&profile.view(&view)), expected);
    let hidden = profile.view(&view).hidden();
    assert_eq!((hidden.functions, hidden.self_cost, hidden.costly), (2, 40, 2));
    // A little less, and origin alone decides.
    let profile = sampled(&[("mdVe", 700), ("mdesq", 20), ("md", 41), ("m", 239)]);
    assert_eq!(paths(&profile.view(&view)), [path("main", 1, 239, 1000), path("main;dumps", 3, 761, 761)]);
    assert_eq!(profile.view(&view).hidden().costly, 0);
}

#[test]
fn only_the_folder_that_the_recording_names_is_the_packages_own() {
    let seen = |package: Option<&str>| {
        let options =
            package.map(|package| (ProcessStart::PACKAGE.to_owned(), package.to_owned())).into_iter().collect();
        let mut tape = Tape::started(&ProcessStart { options, ..ProcessStart::default() });
        let mut at = |name, file| Tape::at(tape.python(name, file, 1), 1);
        let stack = [
            at("train", "/srv/python/stackweave/train.py"),
            at("helper", "/srv/python/stackweave/_helper.py"),
            at("start", "/opt/stackweave/_recorders/recorder.py"),
            at("other", "/opt/stackweave2/a.py"),
        ];
        tape.sample((1, 0), &stack, 1);
        let view = Some(View::default());
        let profile = tape.profile(&AggregateOptions { view, ..AggregateOptions::default() });
        profile.functions().functions().iter().map(|function| function.name.to_string()).collect::<Vec<String>>()
    };
    assert_eq!(seen(Some("/opt/stackweave")), ["other", "helper", "train"]);
    assert_eq!(seen(Some("/srv/python/stackweave")), ["other", "start"]);
    assert_eq!(seen(None), ["other", "start", "helper", "train"]);
}

#[test]
fn cost_without_a_visible_caller_stays_in_the_total() {
    let profile = sampled(&[("V", 3), ("Vi", 4), ("m", 5)]);
    let view = profile.view(&View::default());
    assert_eq!(paths(&view), [path("main", 1, 5, 5)]);
    assert_eq!((view.total(), view.without_frame()), (12, 7));
}

#[test]
fn functions_have_their_origins() {
    let profile = sampled(&[("Vmpdesiqnl", 1)]);
    let origins: BTreeMap<&str, CodeOrigin> =
        profile.functions().functions().iter().map(|function| (&**function.full_name(), function.origin)).collect();
    let of = |origin| origins.iter().filter(|(_, of)| **of == origin).map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!(of(CodeOrigin::Interpreter), ["_find_and_load", "libpython3.11.so.1.0+0x100"]);
    assert_eq!(of(CodeOrigin::Library), ["JSONEncoder.encode", "Session.get", "dumps", "libc.so.6+0x200"]);
    assert_eq!(of(CodeOrigin::Program), ["fast.so+0x300", "handle", "main", "phase"]);
}

#[test]
fn filters_select_by_module_file_function_and_kind() {
    let profile = sampled(&[("VmdenV", 1), ("mp", 2), ("mlq", 4)]);
    let shown = |filter: Filter| {
        let view = profile.view(&View { show_all: true, filter });
        assert_eq!(view.total(), profile.total());
        paths(&view).into_iter().map(|path| (path.0, path.3)).collect::<Vec<_>>()
    };
    let patterns = |texts: &[&str]| -> Vec<Pattern> { texts.iter().map(|text| text.parse().unwrap()).collect() };
    let include = |texts: &[&str]| shown(Filter { include: patterns(texts), ..Filter::default() });
    let name = |text: &str, total: i64| (text.to_owned(), total);
    assert_eq!(include(&["file:/srv/me/*"]), [name("main", 7), name("main;handle", 2)]);
    assert_eq!(include(&["module:fast.so", "function:phase"]), [name("fast.so+0x300", 1), name("phase", 4)]);
    assert_eq!(include(&["JSONEncoder"]), [name("JSONEncoder.encode", 1)]);
    let native = shown(Filter { kinds: vec![FrameKind::Native], ..Filter::default() });
    assert_eq!(native.len(), 4);
    assert_eq!(native[2], name("libpython3.11.so.1.0+0x100;fast.so+0x300", 1));
    let label = shown(Filter { kinds: vec![FrameKind::Span], ..Filter::default() });
    assert_eq!(label, [name("phase", 4)]);
    let both = Filter { include: patterns(&["file:*.py"]), exclude: patterns(&["json"]), ..Filter::default() };
    assert_eq!(shown(both), [name("main", 7), name("main;handle", 2)]);
}

/// Calls, and cumulative time, of visible functions do not change.
#[test]
fn hiding_changes_neither_totals_nor_the_calls_of_visible_functions() {
    for seed in 0..30 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut tape = tape();
        let frames: Vec<RawFrame> = frames(&mut tape).into_values().collect();
        let mut depth = 0;
        for ticks in (0..400).map(|step| step * 3) {
            if depth == 0 || (depth < 10 && random.below(2) == 0) {
                tape.begin((1, ticks), frames[random.below(frames.len())]);
                depth += 1;
            } else {
                tape.end((1, ticks));
                depth -= 1;
            }
        }
        let processes = [tape.process()];
        let of = |view| recording::profile(&processes, &AggregateOptions { view, ..AggregateOptions::default() });
        let (profile, view) = (of(None), of(Some(View::default())));
        let same = profile.view(&View::default());
        assert!(view.tree() == same.tree() && view.hidden() == same.hidden());
        assert_eq!(view.total(), profile.total());
        let own: i64 = view.tree().nodes().iter().map(|node| node.cost.self_cost).sum();
        assert_eq!(own, profile.total());
        let (before, after) = (Statistics::of(&profile), Statistics::of(&view));
        for (id, shown) in after.functions() {
            let function = view.functions().function(id);
            let whole = before.function(profile.functions().find(function).unwrap());
            assert_ne!(function.origin, CodeOrigin::Interpreter);
            if function.origin == CodeOrigin::Program {
                assert_eq!(
                    (shown.calls, shown.primitive_calls, shown.total),
                    (whole.calls, whole.primitive_calls, whole.total)
                );
                assert!(shown.self_cost >= whole.self_cost);
            } else {
                assert!(shown.calls <= whole.calls && shown.total <= whole.total);
            }
        }
    }
}
