//! Flame graphs show the tree of a profile, with any names.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};
use stackweave_export::{ExportError, ExportOptions, Format, export};
use stackweave_profile::{AggregateOptions, Measure, View};
use stackweave_recording::Recording;
use stackweave_tapes::{Tape, span};
use stackweave_testkit::folder::Folder;

use crate::common::examples::{MAIN_THREAD, TOTAL, TREE, example, nasty, nasty_names, random};
use crate::common::readers::{reader_script, run, system_program};
use crate::common::trees::profiled;
use crate::common::{exported, exported_text};
use crate::svg::{check_elements, child, number, parse, shown, title};

fn whole() -> ExportOptions<'static> {
    let part = AggregateOptions { measure: Some(Measure::WallTime), ..AggregateOptions::default() };
    ExportOptions { part, view: Some(View { show_all: true, ..View::default() }), ..ExportOptions::default() }
}

/// A box as read from the picture.
#[derive(Debug)]
struct DrawnBox {
    path: Vec<String>,
    row: usize,
    left: f64,
    width: f64,
    class: String,
    title: Vec<String>,
}

/// Returns the boxes with the boxes around each: the last one of the row above, as in the script of the picture.
fn boxes(document: &Document<'_>) -> Vec<DrawnBox> {
    let group = document.descendants().find(|node| node.attribute("id") == Some("boxes")).unwrap();
    let [top, row_height] = ["data-top", "data-row"].map(|name| number(group, name));
    let mut above: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let seen = |of: Node<'_, '_>| {
        let rect = child(of, "rect").unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number of rows")]
        let row = ((number(rect, "y") - top) / row_height) as usize;
        let title = title(of);
        let mut path = if of.attribute("class") == Some("first") { Vec::new() } else { above[&(row - 1)].clone() };
        path.push(title[0].clone());
        above.insert(row, path.clone());
        let class = rect.attribute("class").unwrap().to_owned();
        DrawnBox { path, row, left: number(rect, "x"), width: number(rect, "width"), class, title }
    };
    group.children().filter(Node::is_element).map(seen).collect()
}

fn assert_near(one: f64, other: f64, context: &dyn core::fmt::Debug) {
    assert!((one - other).abs() < 0.0001, "{one} and {other}: {context:?}");
}

#[test]
fn boxes_are_as_wide_as_their_cost() {
    let text = exported_text(&example().recording(), Format::Flamegraph, &whole());
    let document = parse(&text);
    check_elements(&document);
    let boxes = boxes(&document);
    assert_eq!(boxes.len(), TREE.len() + 1);
    assert_eq!((boxes[0].title[0].as_str(), boxes[0].width), ("all", 100.0));
    for (path, calls, self_cost, total) in TREE {
        let is_it = |of: &&DrawnBox| of.path[1..].iter().map(String::as_str).eq(path.iter().copied());
        let found = boxes.iter().find(is_it).unwrap_or_else(|| panic!("no {path:?}"));
        let share = |cost: i64| cost as f64 / TOTAL as f64 * 100.0;
        assert_near(found.width, share(total), found);
        let costs = found.title.last().unwrap();
        let expected = format!("({:.1}%), self ", share(total));
        assert!(
            costs.contains(&expected) && costs.contains(&format!("({:.1}%), {calls} call", share(self_cost))),
            "{costs}"
        );
        assert_eq!(found.row, path.len());
    }
    assert_eq!(boxes.iter().find(|of| of.path.last().unwrap() == "main").unwrap().title[1], "train.py:1");
}

#[test]
fn random_trees_are_drawn_completely_and_inside_their_callers() {
    let recording = random(3, 3000).recording();
    let text = exported_text(&recording, Format::Flamegraph, &whole());
    let document = parse(&text);
    let boxes = boxes(&document);
    let tree = profiled(&recording, &AggregateOptions::default());
    let total: i64 = tree.iter().filter(|(path, _)| path.len() == 1).map(|(_, cost)| cost.2).sum();
    let mut widths: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    for of in &boxes[1..] {
        *widths.entry(of.path[1..].to_vec()).or_default() += of.width;
    }
    for (path, width) in &widths {
        let share = tree[path].2 as f64 / total as f64 * 100.0;
        assert!((width - share).abs() < 0.01, "{path:?}: {width} and {share}");
    }
    let narrow = tree.values().filter(|cost| (cost.2 as f64) < total as f64 * 0.1 / 1200.0).count();
    assert!(widths.len() + narrow >= tree.len(), "{} of {} without {narrow}", widths.len(), tree.len());
    let mut around: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for of in &boxes {
        if let Some((left, right)) = of.row.checked_sub(1).map(|row| around[&row]) {
            assert!(of.left >= left - 0.001 && of.left + of.width <= right + 0.001, "{of:?}");
        }
        around.insert(of.row, (of.left, of.left + of.width));
    }
}

#[test]
fn time_order_shows_each_thread_in_the_order_of_time() {
    let options = ExportOptions { time_order: true, ..whole() };
    let text = exported_text(&example().recording(), Format::Flamegraph, &options);
    let document = parse(&text);
    check_elements(&document);
    let seen: Vec<(String, usize, f64, f64)> = boxes(&document)
        .iter()
        .map(|of| (of.path.last().unwrap().clone(), of.row, of.left * 30.0, of.width * 30.0))
        .collect();
    let expected = [
        ("main (4242)", 0, 0, 3000),
        ("main", 1, 0, 3000),
        ("Model.step", 2, 100, 1900),
        ("fib", 3, 200, 800),
        ("fib", 4, 300, 300),
        ("load batch", 3, 1000, 400),
        ("outer", 3, 1500, 400),
        ("inner", 4, 1500, 400),
        ("Model.step", 2, 2100, 500),
        ("worker (4243)", 5, 500, 1000),
        ("fib", 6, 500, 1000),
        ("load batch", 7, 900, 100),
    ];
    assert_eq!(seen.len(), expected.len(), "{seen:?}");
    for (seen, (name, row, began, took)) in seen.iter().zip(expected) {
        assert_eq!((seen.0.as_str(), seen.1), (name, row));
        assert!((seen.2 - f64::from(began)).abs() < 0.01 && (seen.3 - f64::from(took)).abs() < 0.01, "{seen:?}");
    }
}

#[test]
fn measures_without_an_order_in_time_are_refused() {
    let part = AggregateOptions { measure: Some(Measure::Samples), ..AggregateOptions::default() };
    let options = ExportOptions { time_order: true, part, ..ExportOptions::default() };
    let folder = Folder::new();
    let done = export(&example().recording(), Format::Flamegraph, &folder.file("a.svg"), &options, (None, &mut |_| {}));
    assert!(matches!(done, Err(ExportError::Unsupported(why)) if why.contains("in the order of time")));
    assert!(folder.names().is_empty());
}

fn changed() -> Recording {
    let mut tape = Tape::new();
    tape.thread(MAIN_THREAD, 1, "main");
    let on = |ticks| (MAIN_THREAD, ticks);
    tape.begin(on(0), span("same"));
    tape.end(on(100));
    tape.begin(on(100), span("parent"));
    tape.begin(on(100), span("grows"));
    tape.end(on(500));
    tape.begin(on(500), span("is new"));
    tape.end(on(600));
    tape.end(on(600));
    tape.begin(on(600), span("shrinks"));
    tape.end(on(620));
    tape.recording()
}

fn unchanged() -> Recording {
    let mut tape = Tape::new();
    tape.thread(MAIN_THREAD, 1, "main");
    let on = |ticks| (MAIN_THREAD, ticks);
    tape.begin(on(0), span("same"));
    tape.end(on(100));
    tape.begin(on(100), span("parent"));
    tape.begin(on(100), span("grows"));
    tape.end(on(200));
    tape.begin(on(200), span("is gone"));
    tape.end(on(250));
    tape.end(on(250));
    tape.begin(on(250), span("shrinks"));
    tape.end(on(450));
    tape.recording()
}

#[test]
fn a_difference_is_red_or_blue_and_missing_functions_are_listed() {
    let before = unchanged();
    let options = ExportOptions { before: Some(&before), ..whole() };
    let text = exported_text(&changed(), Format::Flamegraph, &options);
    let document = parse(&text);
    check_elements(&document);
    let boxes = boxes(&document);
    let of = |name: &str| boxes.iter().find(|of| of.title[0] == name).unwrap_or_else(|| panic!("no {name}"));
    let classes = ["same", "parent", "grows", "is new", "shrinks"].map(|name| of(name).class.as_str());
    assert_eq!(classes, ["same", "more5", "more5", "more3", "less4"]);
    assert_near(of("grows").width, 400.0 / 620.0 * 100.0, of("grows"));
    assert_eq!(of("grows").title[1], "100 ns before, 400 ns after (+300.0%)");
    assert_eq!(of("is new").title[1], "100 ns, new");
    let notes: Vec<&str> =
        document.descendants().filter(|node| node.has_tag_name("text")).filter_map(|n| n.text()).collect();
    assert!(notes.contains(&"Gone: 50 ns in 1 path") && notes.contains(&"  50 ns is gone in parent"), "{notes:?}");
    assert!(notes.contains(&"wall time: 450 ns before, 620 ns after (+37.8%)"), "{notes:?}");
    assert!(notes.contains(&"more than before") && notes.contains(&"less than before"));
}

#[test]
fn nasty_names_are_escaped() {
    for time_order in [false, true] {
        let options = ExportOptions { time_order, ..whole() };
        let recording = nasty().recording();
        let text = exported_text(&recording, Format::Flamegraph, &options);
        let document = parse(&text);
        check_elements(&document);
        let boxes = boxes(&document);
        let names: Vec<&String> = boxes.iter().map(|of| &of.title[0]).collect();
        for name in nasty_names() {
            let count = names.iter().filter(|other| ***other == shown(&name)).count();
            assert_eq!(count, 2, "{name:?} as a label and as a function, in {names:?}");
        }
    }
}

#[test]
fn python_reads_the_picture() {
    let folder = Folder::new();
    let path = folder.write("a.svg", &exported(&nasty().recording(), Format::Flamegraph, &whole()));
    let Some(mut command) = reader_script("read_svg.py") else { return };
    let seen: serde_json::Value = serde_json::from_str(&run(command.arg(path))).unwrap();
    assert_eq!(seen["scripts"], 1);
    let titles: Vec<&str> = seen["titles"].as_array().unwrap().iter().map(|title| title.as_str().unwrap()).collect();
    for name in nasty_names() {
        assert!(titles.iter().any(|title| title.split('\n').next() == Some(&shown(&name))), "{name:?}");
    }
}

#[test]
fn empty_recordings_and_other_measures_are_drawn() {
    let text = exported_text(&Tape::new().recording(), Format::Flamegraph, &ExportOptions::default());
    assert_eq!(boxes(&parse(&text)).len(), 1);
    for measure in Measure::ALL {
        let part = AggregateOptions { measure: Some(measure), ..AggregateOptions::default() };
        let text = exported_text(&example().recording(), Format::Flamegraph, &ExportOptions { part, ..whole() });
        let document = parse(&text);
        check_elements(&document);
        let measure_text = measure.describe().trim_start_matches("bytes ");
        assert!(text.contains(measure_text) && boxes(&document).len() > 1, "{measure}");
    }
}

#[test]
fn scripts_can_be_parsed() {
    for script in ["flamegraph/flamegraph.js", "callgraph/callgraph.js"] {
        let Some(mut node) = system_program("node", "--version") else { return };
        run(node.arg("--check").arg(format!("{}/src/formats/{script}", env!("CARGO_MANIFEST_DIR"))));
    }
}
