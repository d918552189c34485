//! The curves of arrows: vertical inside ranks, at the coordinates of their bends, and curved between ranks.

use super::coordinates::Coordinates;
use super::ranks::{LinkVertices, Ranks};
use super::{GraphLayout, GraphLink, LOOP_WIDTH, Rect, Size};

/// The path of an arrow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Route {
    /// The `d` attribute of an SVG path.
    pub(crate) path: String,
    pub(crate) label: Rect,
    /// Whether it points up.
    pub(crate) is_back: bool,
}

pub(super) fn routes(ranks: &Ranks, coordinates: &Coordinates, links: &[GraphLink], backward: &[bool]) -> GraphLayout {
    let boxes: Vec<Rect> = (0..ranks.vertices.len())
        .take_while(|vertex| ranks.vertices[*vertex].is_box)
        .map(|vertex| rect(ranks, coordinates, vertex))
        .collect();
    let ports = Ports::of(ranks, coordinates, &boxes);
    let mut routes = Vec::with_capacity(links.len());
    for (index, ((link, chain), is_back)) in links.iter().zip(&ranks.chains).zip(backward).enumerate() {
        routes.push(if link.from == link.to {
            loop_of(&boxes[link.from], link.label)
        } else {
            let ends = (ports.bottoms[index], ports.tops[index]);
            let mut points = points(chain, ends, &boxes, coordinates, ranks);
            if *is_back {
                points.reverse();
            }
            Route { path: path(&points), label: rect(ranks, coordinates, chain.label), is_back: *is_back }
        });
    }
    let edge = |vertex: usize| coordinates.x[vertex] + ranks.vertices[vertex].right;
    let width = (0..ranks.vertices.len()).map(edge).fold(0.0, f64::max);
    let height = coordinates.bands.last().map_or(0.0, |band| band.1);
    GraphLayout { boxes, routes, size: Size { width, height } }
}

/// Returns the rectangle of a box or label, centred vertically in its rank.
fn rect(ranks: &Ranks, coordinates: &Coordinates, vertex: usize) -> Rect {
    let of = &ranks.vertices[vertex];
    let (top, bottom) = coordinates.bands[of.rank];
    Rect { x: coordinates.x[vertex] - of.left, y: f64::midpoint(top, bottom) - of.size.height / 2.0, size: of.size }
}

/// The points where arrows leave and reach boxes, by link: side by side, sorted by their other ends.
struct Ports {
    bottoms: Vec<f64>,
    tops: Vec<f64>,
}

impl Ports {
    fn of(ranks: &Ranks, coordinates: &Coordinates, boxes: &[Rect]) -> Self {
        let mut below: Vec<Vec<(f64, usize)>> = vec![Vec::new(); boxes.len()];
        let mut above: Vec<Vec<(f64, usize)>> = vec![Vec::new(); boxes.len()];
        for (link, chain) in ranks.chains.iter().enumerate() {
            if let [upper, second, .., last, lower] | [upper, second @ last, lower] = chain.vertices[..] {
                below[upper].push((coordinates.x[second], link));
                above[lower].push((coordinates.x[last], link));
            }
        }
        let mut ports = Self { bottoms: vec![0.0; ranks.chains.len()], tops: vec![0.0; ranks.chains.len()] };
        for (sides, of) in [(below, &mut ports.bottoms), (above, &mut ports.tops)] {
            for (mut side, rect) in sides.into_iter().zip(boxes) {
                side.sort_by(|a, b| a.0.total_cmp(&b.0));
                spread(&side, rect, of);
            }
        }
        ports
    }
}

#[expect(clippy::cast_precision_loss, reason = "a box has few arrows")]
fn spread(side: &[(f64, usize)], rect: &Rect, ports: &mut [f64]) {
    let room = rect.size.width * 0.8;
    let step = (room / side.len().max(1) as f64).min(24.0);
    let first = rect.centre_x() - step * (side.len().saturating_sub(1)) as f64 / 2.0;
    for (index, (_, link)) in side.iter().enumerate() {
        ports[*link] = first + step * index as f64;
    }
}

/// Returns the vertical parts of an arrow: x, first y, last y.
fn points(
    chain: &LinkVertices,
    ends: (f64, f64),
    boxes: &[Rect],
    coordinates: &Coordinates,
    ranks: &Ranks,
) -> Vec<[f64; 3]> {
    let last = chain.vertices.len() - 1;
    let straight = |(index, vertex): (usize, &usize)| {
        let (top, bottom) = coordinates.bands[ranks.vertices[*vertex].rank];
        match index {
            0 => [ends.0, boxes[*vertex].bottom(), bottom],
            _ if index == last => [ends.1, top, boxes[*vertex].y],
            _ => [coordinates.x[*vertex], top, bottom],
        }
    };
    chain.vertices.iter().enumerate().map(straight).collect()
}

fn path(points: &[[f64; 3]]) -> String {
    let is_up = points.first().zip(points.last()).is_some_and(|(first, last)| first[1] > last[1]);
    let mut parts = Vec::with_capacity(points.len() * 2);
    let mut from: Option<[f64; 2]> = None;
    for [x, upper, lower] in points {
        let (enter, leave) = if is_up { (lower, upper) } else { (upper, lower) };
        parts.push(match from {
            None => format!("M{x:.1} {enter:.1}"),
            Some([from_x, from_y]) => {
                let middle = f64::midpoint(from_y, *enter);
                format!("C{from_x:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {enter:.1}")
            }
        });
        if (leave - enter).abs() > 0.05 {
            parts.push(format!("V{leave:.1}"));
        }
        from = Some([*x, *leave]);
    }
    parts.concat()
}

/// Returns the arrow of a self link, at the right side of its box.
fn loop_of(of: &Rect, label: Size) -> Route {
    let right = of.x + of.size.width;
    let (upper, lower) = (of.y + of.size.height * 0.3, of.y + of.size.height * 0.7);
    let far = right + LOOP_WIDTH;
    let path = format!("M{right:.1} {upper:.1}C{far:.1} {upper:.1} {far:.1} {lower:.1} {right:.1} {lower:.1}");
    let y = of.y + (of.size.height - label.height) / 2.0;
    Route { path, label: Rect { x: right + LOOP_WIDTH - 3.0, y, size: label }, is_back: false }
}
