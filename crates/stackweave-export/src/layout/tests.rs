use stackweave_testkit::random::Random;

use super::*;

const LABEL: Size = Size { width: 44.0, height: 26.0 };

fn link(from: usize, to: usize) -> GraphLink {
    GraphLink { from, to, weight: 1.0, label: LABEL }
}

fn boxes(count: usize) -> Vec<Size> {
    let width = |index: usize| 80.0 + u32::try_from(index * 37 % 120).map_or(0.0, f64::from);
    (0..count).map(|index| Size { width: width(index), height: 60.0 }).collect()
}

/// Asserts that nothing overlaps or is outside, and that every arrow has a path.
fn check(sizes: &[Size], links: &[GraphLink], name: &str) -> GraphLayout {
    let layout = lay_out(sizes, links);
    assert_eq!((layout.boxes.len(), layout.routes.len()), (sizes.len(), links.len()), "{name}");
    let labels = layout.routes.iter().map(|route| route.label);
    let all: Vec<Rect> = layout.boxes.iter().copied().chain(labels).collect();
    for (index, one) in all.iter().enumerate() {
        assert!(one.x >= -0.001 && one.x + one.size.width <= layout.size.width + 0.001, "{name}: {one:?}");
        assert!(one.y >= -0.001 && one.bottom() <= layout.size.height + 0.001, "{name}: {one:?}");
        for other in &all[index + 1..] {
            assert!(!one.overlaps(other), "{name}: {one:?} and {other:?}");
        }
    }
    for (box_, size) in layout.boxes.iter().zip(sizes) {
        assert_eq!(box_.size, *size, "{name}");
    }
    for (route, link) in layout.routes.iter().zip(links) {
        check_ends(&layout, route, *link, name);
    }
    layout
}

/// Asserts that an arrow begins at the edge of its first box and ends at the edge of its second.
fn check_ends(layout: &GraphLayout, route: &Route, link: GraphLink, name: &str) {
    let (from, to) = (layout.boxes[link.from], layout.boxes[link.to]);
    let numbers: Vec<f64> = route
        .path
        .split(['M', 'C', 'V', ' '])
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().unwrap())
        .collect();
    let (first_y, last_y) = (numbers[1], *numbers.last().unwrap());
    let on_edge = |y: f64, of: Rect| y > of.y - 0.1 && y < of.bottom() + 0.1;
    assert!(on_edge(first_y, from) && on_edge(last_y, to), "{name}: {} from {from:?} to {to:?}", route.path);
    assert!(numbers[0] > from.x - 0.1 && numbers[0] < from.x + from.size.width + 0.1, "{name}: {}", route.path);
    if link.from != link.to && !route.is_back {
        assert!(from.bottom() < to.y, "{name}: {link:?} does not point down");
    }
}

#[test]
fn random_graphs_have_no_overlaps() {
    for seed in 1..=24_u64 {
        let mut random = Random::new(seed);
        let count = 5 + random.below(196);
        let mut links: Vec<GraphLink> = Vec::new();
        for _ in 0..count + random.below(count * 2) {
            let (from, to) = (random.below(count), random.below(count));
            if !links.iter().any(|link| (link.from, link.to) == (from, to)) {
                links.push(link(from, to));
            }
        }
        check(&boxes(count), &links, &format!("seed {seed}, {count} boxes, {} links", links.len()));
    }
}

#[test]
fn every_shape_of_graph_is_laid_out() {
    check(&[], &[], "nothing");
    check(&boxes(1), &[], "one box");
    check(&boxes(1), &[link(0, 0)], "recursion");
    check(&boxes(2), &[link(0, 1), link(1, 0)], "two that call each other");
    check(&boxes(7), &[link(0, 1), link(2, 3), link(4, 4)], "separate components");
    check(&boxes(200), &[], "200 boxes alone");
    let chain: Vec<GraphLink> = (1..200).map(|to| link(to - 1, to)).collect();
    let deep = check(&boxes(200), &chain, "a deep chain");
    assert!(deep.size.width < 260.0, "a chain is straight, but {} wide", deep.size.width);
    let fan: Vec<GraphLink> = (1..200).map(|to| link(0, to)).collect();
    let wide = check(&boxes(200), &fan, "a wide fan");
    assert!(wide.size.width < 8000.0, "a fan is {} wide", wide.size.width);
    let into: Vec<GraphLink> = (0..199).map(|from| link(from, 199)).collect();
    check(&boxes(200), &into, "a fan to one");
    let cycle: Vec<GraphLink> = (0..50).map(|from| link(from, (from + 1) % 50)).collect();
    let cycle = check(&boxes(50), &cycle, "a cycle");
    assert_eq!(cycle.routes.iter().filter(|route| route.is_back).count(), 1);
    let all: Vec<GraphLink> = (0..12).flat_map(|from| (0..12).map(move |to| link(from, to))).collect();
    check(&boxes(12), &all, "each with each");
}

/// A graph of views that use each other, and of functions that all of them call.
const VIEWS: [(usize, usize); 17] = [
    (0, 1),
    (0, 2),
    (0, 3),
    (0, 6),
    (0, 7),
    (0, 8),
    (1, 4),
    (1, 5),
    (1, 6),
    (1, 8),
    (2, 5),
    (4, 8),
    (5, 6),
    (5, 8),
    (6, 7),
    (6, 8),
    (7, 8),
];

#[test]
fn separate_components_are_beside_the_others() {
    let links: Vec<GraphLink> = VIEWS.iter().map(|(from, to)| link(*from, *to)).collect();
    let tied = check(&boxes(9), &links, "a planner").size.width;
    for alone in [1, 3] {
        let sizes = boxes(9 + alone);
        let layout = check(&sizes, &links, "a planner, and boxes alone");
        let widths: f64 = sizes[9..].iter().map(|size| size.width + 14.0).sum();
        assert!(layout.size.width <= tied + widths + 1.0, "{} for {tied} and {widths}", layout.size.width);
    }
}

#[test]
fn callers_are_above_callees() {
    let layout =
        check(&boxes(4), &[link(0, 1), link(0, 2), link(1, 3), link(2, 3), link(3, 1)], "a diamond and a cycle");
    let tops: Vec<f64> = layout.boxes.iter().map(|rect| rect.y).collect();
    assert!(tops[0] < tops[1] && tops[1] < tops[3] && tops[0] < tops[2]);
    assert_eq!(layout.routes.iter().map(|route| route.is_back).collect::<Vec<_>>(), [false, false, false, false, true]);
}
