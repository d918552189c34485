//! Call graphs of external data look like those of recordings.

use roxmltree::Document;
use stackweave_export::{ExportOptions, ExternalCalls, ExternalFunction, ExternalGraph, Format};
use stackweave_profile::{AggregateOptions, CallStatistics, Measure, Profile, Statistics, View, aggregate};
use stackweave_testkit::random::Random;

use crate::common::examples::random;
use crate::common::exported_text;
use crate::svg::{check_elements, check_overlaps, costs, of_class, parse, title};

/// Copies a profile as external data.
fn external(profile: &Profile) -> ExternalGraph {
    let statistics = Statistics::of(profile);
    let function = |(id, statistics)| {
        let known = profile.functions().function(id);
        let filename = known.filename.as_deref().unwrap_or_default().to_owned();
        ExternalFunction { name: known.full_name().to_string(), filename, line: known.first_line, statistics }
    };
    let call = |edge: &stackweave_profile::Edge| ExternalCalls {
        caller: edge.caller.index(),
        callee: edge.callee.index(),
        statistics: edge.statistics,
    };
    ExternalGraph {
        title: "external".to_owned(),
        functions: statistics.functions().map(function).collect(),
        calls: statistics.edges().iter().map(call).collect(),
    }
}

fn arrows(document: &Document<'_>) -> Vec<Vec<String>> {
    of_class(document, "arrow").into_iter().map(title).collect()
}

#[test]
fn a_recording_and_its_statistics_have_the_same_picture() {
    let part = AggregateOptions { measure: Some(Measure::WallTime), ..AggregateOptions::default() };
    let view = Some(View { show_all: true, ..View::default() });
    let options = ExportOptions { part, view, ..ExportOptions::default() };
    for seed in [5, 6] {
        let recording = random(seed, 2000).recording();
        let profile = aggregate(recording.processes(), &options.part, None, &mut |_| {}).unwrap().merged();
        let (expected, found) = (exported_text(&recording, Format::Callgraph, &options), external(&profile).svg());
        let (expected, found) = (parse(&expected), parse(&found));
        assert_eq!(costs(&expected), costs(&found), "seed {seed}");
        assert_eq!(arrows(&expected), arrows(&found), "seed {seed}");
        assert!(!costs(&found).is_empty() && !arrows(&found).is_empty());
    }
}

fn named(name: &str, filename: &str, statistics: CallStatistics) -> ExternalFunction {
    ExternalFunction { name: name.to_owned(), filename: filename.to_owned(), line: Some(7), statistics }
}

#[test]
fn extreme_data_is_drawn() {
    let cost =
        |self_cost, total| CallStatistics { calls: 2, primitive_calls: 1, self_cost, total, total_of_all: total };
    let functions = vec![
        named("</text>&\n", "/a/<b>.py", cost(i64::MAX, i64::MAX)),
        named("<built-in method>", "~", cost(i64::MAX, i64::MIN)),
        named("", "", cost(-5, -5)),
        named("gone", "a.py", CallStatistics::default()),
    ];
    let call = |caller, callee| ExternalCalls { caller, callee, statistics: cost(-1, i64::MAX) };
    let calls = vec![call(0, 0), call(0, 1), call(1, 0), call(2, 99), call(99, 2), call(3, 0)];
    let text = ExternalGraph { title: "a\n<b>".to_owned(), functions, calls }.svg();
    let document = parse(&text);
    check_elements(&document);
    check_overlaps(&document, "extreme");
    let kinds: Vec<_> = of_class(&document, "box").into_iter().map(|of| of.attribute("data-kind").unwrap()).collect();
    assert_eq!((kinds, arrows(&document).len()), (vec!["python", "native", "native"], 3));
    assert!(title(of_class(&document, "box")[1])[0].starts_with("(no name)"));
    assert_eq!(parse(&ExternalGraph::default().svg()).root_element().tag_name().name(), "svg");
}

#[test]
fn two_hundred_functions_do_not_overlap() {
    for seed in 1..=3 {
        let mut random = Random::new(seed);
        let mut statistics = |most: i64| {
            let total = 1_000_000 + i64::try_from(random.below(1_000_000)).unwrap() * most;
            CallStatistics { calls: 3, primitive_calls: 2, self_cost: total / 100, total, total_of_all: total }
        };
        let functions = (0..200).map(|number| named(&format!("f{number}"), "a.py", statistics(9))).collect();
        let costs: Vec<CallStatistics> = (0..600).map(|_| statistics(1)).collect();
        let mut random_index = || random.below(200);
        let calls = costs.into_iter().map(|statistics| ExternalCalls {
            caller: random_index(),
            callee: random_index(),
            statistics,
        });
        let text = ExternalGraph { title: "many".to_owned(), functions, calls: calls.collect() }.svg();
        let document = parse(&text);
        check_overlaps(&document, &format!("seed {seed}"));
        assert_eq!(of_class(&document, "box").len(), 200, "seed {seed}");
    }
}
