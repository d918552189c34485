//! Pictures, read by an XML parser.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

/// A box or a label: left, top, width, height.
pub type Rect = [f64; 4];

pub fn parse(text: &str) -> Document<'_> {
    Document::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub fn number(node: Node<'_, '_>, name: &str) -> f64 {
    let text = node.attribute(name).unwrap_or_else(|| panic!("no {name}: {node:?}"));
    text.trim_end_matches('%').parse().unwrap()
}

pub fn child<'a, 'd>(node: Node<'a, 'd>, name: &str) -> Option<Node<'a, 'd>> {
    node.children().find(|child| child.has_tag_name(name))
}

/// Returns the elements whose class begins with this word.
pub fn of_class<'a, 'd>(document: &'a Document<'d>, class: &str) -> Vec<Node<'a, 'd>> {
    let is_it = |node: &Node<'_, '_>| {
        node.attribute("class").and_then(|text| text.split(' ').next()).is_some_and(|first| first == class)
    };
    document.descendants().filter(is_it).collect()
}

pub fn rect(node: Node<'_, '_>) -> Rect {
    ["x", "y", "width", "height"].map(|name| number(node, name))
}

/// Returns the title of an element, line by line.
pub fn title(node: Node<'_, '_>) -> Vec<String> {
    let text = child(node, "title").and_then(|title| title.text()).unwrap_or_default();
    text.split('\n').map(str::to_owned).collect()
}

/// Asserts that a picture has only the expected elements: one script and one style, and nothing that loads more.
pub fn check_elements(document: &Document<'_>) {
    let known = ["svg", "title", "style", "rect", "text", "g", "script", "defs", "marker", "path"];
    for node in document.descendants().filter(Node::is_element) {
        assert!(known.contains(&node.tag_name().name()), "{node:?}");
        for attribute in node.attributes() {
            assert!(!attribute.name().starts_with("on") && attribute.name() != "href", "{node:?}");
        }
    }
    for once in ["script", "style", "svg"] {
        assert_eq!(document.descendants().filter(|node| node.has_tag_name(once)).count(), 1, "{once}");
    }
}

/// Returns a name as pictures show it.
pub fn shown(name: &str) -> String {
    let letters: Vec<char> = name.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect();
    match letters.len() {
        0 => "(no name)".to_owned(),
        long if long > 240 => {
            let (head, tail) = (&letters[..159], &letters[long - 80..]);
            head.iter().chain(&['…']).chain(tail).collect()
        }
        _ => letters.into_iter().collect(),
    }
}

/// Returns the costs of a call graph, by name: calls, primitive calls, self and total.
pub fn costs(document: &Document<'_>) -> BTreeMap<String, (u64, u64, i64, i64)> {
    let cost = |of: Node<'_, '_>| {
        let text = |name: &str| of.attribute(name).unwrap().to_owned();
        let count = |name| text(name).parse::<u64>().unwrap();
        let cost = |name| text(name).parse::<i64>().unwrap();
        let costs = (count("data-calls"), count("data-primitive"), cost("data-self"), cost("data-total"));
        (title(of)[0].clone(), costs)
    };
    of_class(document, "box").into_iter().map(cost).collect()
}

/// Asserts that no boxes or labels of a call graph overlap.
pub fn check_overlaps(document: &Document<'_>, name: &str) {
    let boxes = of_class(document, "box").into_iter().chain(of_class(document, "label"));
    let rects: Vec<Rect> = boxes.map(|of| rect(child(of, "rect").unwrap())).collect();
    for (index, a) in rects.iter().enumerate() {
        for b in &rects[index + 1..] {
            let apart = a[0] + a[2] <= b[0] || b[0] + b[2] <= a[0] || a[1] + a[3] <= b[1] || b[1] + b[3] <= a[1];
            assert!(apart, "{name}: {a:?} and {b:?}");
        }
    }
}
