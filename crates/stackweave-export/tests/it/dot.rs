//! Call graphs for graphviz.

use stackweave_export::{ExportOptions, Format};
use stackweave_profile::View;
use stackweave_testkit::folder::Folder;

use crate::common::examples::{example, nasty, nasty_names};
use crate::common::readers::{run, system_program};
use crate::common::{assert_golden, exported, exported_text};
use crate::svg::{of_class, parse, shown};

fn whole() -> ExportOptions<'static> {
    ExportOptions { view: Some(View { show_all: true, ..View::default() }), ..ExportOptions::default() }
}

#[test]
fn the_graph_is_written_as_text() {
    assert_golden("example.dot", &exported_text(&example().recording(), Format::Dot, &whole()));
}

#[test]
fn nasty_names_are_quoted() {
    let text = exported_text(&nasty().recording(), Format::Dot, &whole());
    for line in text.lines().filter(|line| line.starts_with("\tn")) {
        let mut is_inside = false;
        let mut letters = line.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' => assert!(is_inside && letters.next().is_some(), "{line}"),
                '"' => is_inside = !is_inside,
                _ => {}
            }
        }
        assert!(!is_inside && line.ends_with("];"), "{line}");
    }
    assert!(text.ends_with("}\n") && text.lines().filter(|line| *line == "}").count() == 1);
}

#[test]
fn graphviz_draws_it() {
    let Some(mut dot) = system_program("dot", "-V") else { return };
    let folder = Folder::new();
    let path = folder.write("a.dot", &exported(&nasty().recording(), Format::Dot, &whole()));
    let drawn = run(dot.arg("-Tsvg").arg(path)).replace('\u{a0}', " ");
    let document = roxmltree::Document::parse_with_options(
        &drawn,
        roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() },
    )
    .unwrap();
    let texts: Vec<String> = of_class(&document, "node")
        .iter()
        .flat_map(|node| node.children().filter(|child| child.has_tag_name("text")).filter_map(|text| text.text()))
        .map(|text| text.replace('\u{a0}', " "))
        .collect();
    for name in nasty_names() {
        let shown = shown(&name);
        assert_eq!(texts.iter().filter(|text| text.trim() == shown.trim()).count(), 2, "{name:?} in {texts:?}");
    }
    parse(&exported_text(&example().recording(), Format::Callgraph, &whole()));
}
