//! Call graphs show the figures of `Statistics`, without overlaps.

use stackweave_export::{ExportOptions, Format};
use stackweave_profile::{AggregateOptions, Measure, Statistics, View, aggregate};
use stackweave_recording::Recording;
use stackweave_tapes::{Tape, span};
use stackweave_testkit::folder::Folder;

use crate::common::examples::{STATISTICS, TOTAL, example, nasty, nasty_names, random};
use crate::common::readers::{reader_script, run};
use crate::common::{exported, exported_text};
use crate::svg::{check_elements, check_overlaps, costs, of_class, parse, shown, title};

fn whole() -> ExportOptions<'static> {
    let part = AggregateOptions { measure: Some(Measure::WallTime), ..AggregateOptions::default() };
    ExportOptions { part, view: Some(View { show_all: true, ..View::default() }), ..ExportOptions::default() }
}

fn draw(recording: &Recording, options: &ExportOptions<'_>) -> String {
    exported_text(recording, Format::Callgraph, options)
}

#[test]
fn boxes_and_arrows_show_the_statistics() {
    let text = draw(&example().recording(), &whole());
    let document = parse(&text);
    check_elements(&document);
    check_overlaps(&document, "example");
    let costs = costs(&document);
    assert_eq!(costs.len(), STATISTICS.len());
    for (name, calls, primitive, self_cost, total) in STATISTICS {
        let (found, shown_costs) = costs.iter().find(|(shown, _)| shown.split(" (").next() == Some(name)).unwrap();
        assert_eq!(*shown_costs, (calls, primitive, self_cost, total), "{found}");
    }
    let lines: Vec<&str> = document.descendants().filter(|n| n.has_tag_name("text")).filter_map(|n| n.text()).collect();
    let share = |cost: i64| format!("{:.1}%", cost as f64 / TOTAL as f64 * 100.0);
    assert!(lines.contains(&"1.80 us · 3/2 calls") && lines.contains(&"fib.py:3") && lines.contains(&"libkernel.so"));
    assert!(lines.contains(&format!("total {} · self {}", share(1800), share(1700)).as_str()), "{lines:?}");
    let arrows: Vec<(String, String)> = of_class(&document, "arrow")
        .into_iter()
        .map(|arrow| (title(arrow)[0].clone(), title(arrow)[1].clone()))
        .collect();
    let has = |from_to: &str, costs: &str| arrows.contains(&(from_to.to_owned(), costs.to_owned()));
    assert_eq!(arrows.len(), 7);
    assert!(has("main → Model.step", "2.40 us (60.0%), 2 calls"), "{arrows:?}");
    assert!(has("fib → fib", "300 ns (7.5%), 1 call"), "{arrows:?}");
}

#[test]
fn random_profiles_agree_with_their_statistics() {
    let recording = random(5, 4000).recording();
    let text = draw(&recording, &whole());
    let document = parse(&text);
    check_overlaps(&document, "seed 5");
    let profile = aggregate(recording.processes(), &whole().part, None, &mut |_| {}).unwrap().merged();
    let statistics = Statistics::of(&profile);
    let costs = costs(&document);
    let mut shown = 0;
    for (id, of) in statistics.functions() {
        let function = profile.functions().function(id);
        let location = function.filename.as_deref().map(|file| file.rsplit('/').next().unwrap());
        let location = location.zip(function.first_line).map(|(file, line)| format!(" ({file}:{line})"));
        let name = format!("{}{}", function.full_name(), location.unwrap_or_default());
        if let Some(shown_costs) = costs.get(&name) {
            assert_eq!(*shown_costs, (of.calls, of.primitive_calls, of.self_cost, of.total), "{name}");
            shown += 1;
        } else {
            assert!((of.total as f64) < profile.total() as f64 * 0.005, "{name} is not there: {:?}", costs.keys());
        }
    }
    assert_eq!(shown, costs.len());
}

/// A name, the links between functions, and the number of functions.
type Shape<'a> = (&'a str, &'a [(usize, usize)], usize);

/// Records functions that call each other according to the links.
fn calling(links: &[(usize, usize)], count: usize) -> Recording {
    let mut tape = Tape::new();
    let mut ticks = 0;
    let mut next = || {
        ticks += 10;
        (1, ticks)
    };
    let function = |number: usize| span(&format!("package.module.Class{number}.method"));
    for number in 0..count {
        tape.begin(next(), function(number));
        for (_, callee) in links.iter().filter(|(caller, _)| *caller == number) {
            tape.begin(next(), function(*callee));
            tape.end(next());
        }
        tape.end(next());
    }
    tape.recording()
}

#[test]
fn every_shape_is_legible() {
    let fan: Vec<_> = (1..45).map(|callee| (0, callee)).collect();
    let chain: Vec<_> = (1..40).map(|callee| (callee - 1, callee)).collect();
    let cycle: Vec<_> = (0..20).map(|caller| (caller, (caller + 1) % 20)).collect();
    let itself = [(0, 0), (1, 1), (0, 1), (1, 0)];
    let shapes: [Shape<'_>; 6] = [
        ("one", &[], 1),
        ("alone", &[], 30),
        ("fan", &fan, 45),
        ("chain", &chain, 40),
        ("cycle", &cycle, 20),
        ("recursion", &itself, 2),
    ];
    for (name, links, count) in shapes {
        let text = draw(&calling(links, count), &whole());
        let document = parse(&text);
        check_elements(&document);
        check_overlaps(&document, name);
        let (boxes, arrows) = (of_class(&document, "box").len(), of_class(&document, "arrow").len());
        assert_eq!((boxes, arrows), (count, links.len()), "{name}");
    }
    let text = draw(&Tape::new().recording(), &ExportOptions::default());
    assert!(of_class(&parse(&text), "box").is_empty());
}

#[test]
fn hidden_functions_are_counted_in_a_note() {
    let fan: Vec<_> = (1..1000).map(|callee| (0, callee)).collect();
    let text = draw(&calling(&fan, 1000), &whole());
    let document = parse(&text);
    let boxes = of_class(&document, "box").len();
    let note = format!("hidden, because their cost is negligible: {} functions<", 1000 - boxes);
    assert!((50..=200).contains(&boxes) && text.contains(&note), "{boxes}: {note}");
}

#[test]
fn nasty_names_are_escaped() {
    let text = draw(&nasty().recording(), &whole());
    let document = parse(&text);
    check_elements(&document);
    check_overlaps(&document, "nasty");
    let names: Vec<String> = of_class(&document, "box").into_iter().map(|of| title(of)[0].clone()).collect();
    for name in nasty_names() {
        let shown = shown(&name);
        assert!(names.contains(&shown), "{name:?} as a label, in {names:?}");
        assert!(names.iter().any(|name| name.starts_with(&format!("{shown} ("))), "{name:?} as a function");
    }
}

#[test]
fn python_reads_the_picture() {
    let folder = Folder::new();
    let path = folder.write("a.svg", &exported(&nasty().recording(), Format::Callgraph, &whole()));
    let Some(mut command) = reader_script("read_svg.py") else { return };
    let seen: serde_json::Value = serde_json::from_str(&run(command.arg(path))).unwrap();
    assert_eq!(seen["scripts"], 1);
    let titles = seen["titles"].as_array().unwrap();
    for name in nasty_names() {
        let is_it = |title: &serde_json::Value| title.as_str().unwrap().starts_with(&shown(&name));
        assert!(titles.iter().any(is_it), "{name:?}");
    }
}
