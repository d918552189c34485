//! Flame graphs as text, compared with ones computed by hand.

use stackweave_cli::text::{FlameOptions, FlameShape, FlameTree, Palette, write_flame};
use stackweave_core::RawFrame;
use stackweave_profile::Profile;
use stackweave_tapes::{Tape, span};

use super::profile_of;

/// Returns a profile: of 100, main has 15 self, train 20, its step 50; load has 5, of which read has 5, parse 3 and
/// step 2.
fn profile() -> Profile {
    let mut tape = Tape::new();
    let [main, train, step, load, read, parse] = ["main", "Trainer.train", "step", "load", "read", "parse"].map(span);
    let mut add = |stack: &[RawFrame], weight| tape.sample((1, 1), stack, weight);
    add(&[main], 15);
    add(&[train, main], 20);
    add(&[step, train, main], 50);
    add(&[load, main], 5);
    add(&[read, load, main], 5);
    add(&[parse, load, main], 3);
    add(&[step, load, main], 2);
    profile_of(tape)
}

fn drawn(profile: &Profile, shape: &FlameShape, width: usize, palette: Palette) -> String {
    let options = FlameOptions { width, palette };
    let whole = FlameTree::of(profile, shape).boxes[0].value;
    let shape = FlameShape { least: options.least(whole), ..shape.clone() };
    let mut text = Vec::new();
    write_flame(&mut text, &FlameTree::of(profile, &shape), &options).unwrap();
    String::from_utf8(text).unwrap()
}

fn plain(shape: &FlameShape, width: usize) -> String {
    drawn(&profile(), shape, width, Palette::Plain)
}

#[test]
fn boxes_are_as_wide_as_their_cost() {
    let expected = "\
│all: 100 samples────────────────────────────────│
│main 100.0%─────────────────────────────────────│
│Trainer.train 70.0%───────────────│load──│
│step 50.0%─────────────│          │re││
";
    assert_eq!(plain(&FlameShape::default(), 50), expected);
}

#[test]
fn hidden_levels_are_counted() {
    let shape = FlameShape { max_depth: Some(1), ..FlameShape::default() };
    let expected = "│all: 100 samples───│\n│main 100.0%────────│\n(2 more levels below; --depth shows them)\n";
    assert_eq!(plain(&shape, 21), expected);
    let shape = FlameShape { max_depth: Some(2), ..FlameShape::default() };
    assert!(plain(&shape, 50).ends_with("(1 more level below; --depth shows them)\n"));
    let shape = FlameShape { max_depth: Some(3), ..FlameShape::default() };
    assert!(!plain(&shape, 100).contains("--depth"));
}

#[test]
fn a_root_shows_only_the_calls_below_it() {
    let shape = FlameShape { root: "function:load".parse().ok(), ..FlameShape::default() };
    let expected = "\
│all: 15 of 100 samples──────│
│load 100.0%─────────────────│
│read─────│parse│st…
";
    assert_eq!(plain(&shape, 30), expected);
    let nothing = FlameShape { root: "function:unknown".parse().ok(), ..FlameShape::default() };
    assert_eq!(FlameTree::of(&profile(), &nothing).boxes.len(), 1);
}

#[test]
fn bottom_up_shows_functions_with_their_callers() {
    let shape = FlameShape { bottom_up: true, ..FlameShape::default() };
    let tree = FlameTree::of(&profile(), &shape);
    let name = |place: usize| {
        let of = &tree.boxes[place];
        let name = of.function.map(|id| tree.functions.function(id).full_name().to_string());
        (name.unwrap_or_default(), of.value)
    };
    let below = |place: usize| tree.boxes[place].children.iter().map(|child| name(*child)).collect::<Vec<_>>();
    let pairs =
        |pairs: &[(&str, i64)]| pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect::<Vec<_>>();
    let first = [("step", 52), ("Trainer.train", 20), ("main", 15), ("load", 5), ("read", 5), ("parse", 3)];
    assert_eq!(below(0), pairs(&first));
    let step = tree.boxes[0].children[0];
    assert_eq!(below(step), pairs(&[("Trainer.train", 50), ("load", 2)]));
    let train = tree.boxes[step].children[0];
    assert_eq!(below(train), pairs(&[("main", 50)]));
    let inside = FlameShape { root: "function:load".parse().ok(), bottom_up: true, ..FlameShape::default() };
    let tree = FlameTree::of(&profile(), &inside);
    assert_eq!((tree.boxes[0].value, tree.deepest), (15, 2));
}

#[test]
fn a_recursive_function_is_one_root() {
    let mut tape = Tape::new();
    let [main, fib] = ["main", "fib"].map(span);
    tape.sample((1, 1), &[fib, fib, fib, main], 4);
    tape.sample((1, 2), &[fib, main], 6);
    let profile = profile_of(tape);
    let shape = FlameShape { root: "fib".parse().ok(), ..FlameShape::default() };
    let tree = FlameTree::of(&profile, &shape);
    assert_eq!(tree.boxes.iter().map(|one| one.value).collect::<Vec<_>>(), [10, 10, 4, 4]);
}

/// Building is not recursive, and the number of small boxes is limited.
#[test]
fn deep_and_wide_profiles_are_drawn() {
    let mut tape = Tape::new();
    let deep: Vec<RawFrame> = (0..200).map(|number| span(&format!("level {number}"))).rev().collect();
    tape.sample((1, 1), &deep, 10);
    let outer = span("level 0");
    for number in 0..500 {
        tape.sample((1, 1), &[span(&format!("leaf {number}")), outer], 1);
    }
    let profile = profile_of(tape);
    let text = drawn(&profile, &FlameShape::default(), 60, Palette::Plain);
    assert_eq!(text.lines().count(), 1 + 200 + 1);
    assert_eq!(text.lines().nth(2).unwrap().matches('⋯').count(), 59);
    assert!(!text.contains('\u{1b}'), "small boxes have no colour in plain text");
    let text = drawn(&profile, &FlameShape::default(), 60, Palette::Full);
    let (before, _) = text.lines().nth(2).unwrap().split_once('⋯').unwrap();
    assert!(before.contains("\u{1b}[48;2;"), "small boxes have a colour: {before:?}");
}

#[test]
fn colours_do_not_change_the_text() {
    for (palette, code) in [(Palette::Fixed, "\u{1b}[48;5;"), (Palette::Full, "\u{1b}[48;2;")] {
        let text = drawn(&profile(), &FlameShape::default(), 50, palette);
        assert!(text.contains(code), "{text}");
        let plain: String =
            text.split('\u{1b}').map(|part| part.split_once('m').map_or(part, |(_, rest)| rest)).collect();
        for line in plain.lines().take(4) {
            assert!(line.chars().count() <= 50, "{line}");
        }
        assert!(plain.contains("▏Trainer.train 70.0% "), "{plain}");
    }
    assert!(!plain(&FlameShape::default(), 50).contains('\u{1b}'));
}

#[test]
fn an_empty_profile_has_one_line() {
    let text = drawn(&profile_of(Tape::new()), &FlameShape::default(), 20, Palette::Plain);
    assert_eq!(text.trim(), "");
}

#[test]
fn the_total_cost_is_written_in_full_or_not_at_all() {
    let mut tape = Tape::new();
    tape.begin((1, 0), span("main"));
    tape.end((1, 27_700_000));
    let profile = profile_of(tape);
    let first = |width| {
        let drawn = drawn(&profile, &FlameShape::default(), width, Palette::Plain);
        drawn.lines().next().unwrap().trim_matches(['│', '─']).to_owned()
    };
    assert_eq!(
        [40, 23, 22, 14, 13, 9, 8].map(first),
        [
            "all: 27.7 ms wall time",
            "all: 27.7 ms wall time",
            "all: 27.7 ms",
            "all: 27.7 ms",
            "all: 27.7 ms",
            "27.7 ms",
            "27.7 ms",
        ]
    );
    assert_eq!(first(7), "");
}
