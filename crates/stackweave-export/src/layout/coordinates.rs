//! Assigns coordinates: each vertex is placed as near to the mean of its neighbours as the vertices beside it allow.

use super::components::pull_together;
use super::ranks::Ranks;

/// The centre of each vertex, and the upper and lower edge of each rank.
#[derive(Debug)]
pub(super) struct Coordinates {
    pub(super) x: Vec<f64>,
    pub(super) bands: Vec<(f64, f64)>,
}

/// The number of sweeps over all ranks.
const SWEEPS: usize = 24;

/// The gap between two vertices of a rank, and between two bends.
const BETWEEN: f64 = 14.0;
const BETWEEN_BENDS: f64 = 1.0;

/// The minimum and maximum gap between two ranks: it grows with the horizontal distance of arrows.
const GAP: (f64, f64) = (16.0, 70.0);
const GAP_PER_SIDE: f64 = 0.07;

pub(super) fn assign(ranks: &Ranks) -> Coordinates {
    let mut above: Vec<Vec<(usize, f64)>> = vec![Vec::new(); ranks.vertices.len()];
    let mut below: Vec<Vec<(usize, f64)>> = vec![Vec::new(); ranks.vertices.len()];
    for segment in &ranks.segments {
        above[segment.lower].push((segment.upper, segment.weight));
        below[segment.upper].push((segment.lower, segment.weight));
    }
    let mut x = side_by_side(ranks);
    let count = ranks.orders.len();
    for sweep in 0..SWEEPS {
        let is_last = sweep + 8 > SWEEPS;
        for step in 0..count {
            let rank = if sweep % 2 == 0 { step } else { count - 1 - step };
            let sides: &[&[Vec<(usize, f64)>]] = match sweep % 2 {
                _ if is_last => &[&above, &below],
                0 => &[&above],
                _ => &[&below],
            };
            place_rank(ranks, &ranks.orders[rank], sides, &mut x);
        }
    }
    pull_together(ranks, &mut x, |left, right| apart(ranks, left, right));
    let left = (0..x.len()).map(|vertex| x[vertex] - ranks.vertices[vertex].left).fold(f64::INFINITY, f64::min);
    for x in &mut x {
        *x -= left;
    }
    let bands = bands(ranks, &x);
    Coordinates { x, bands }
}

/// Returns the minimum distance of the centres of two neighbours.
fn apart(ranks: &Ranks, left: usize, right: usize) -> f64 {
    let [left, right] = [&ranks.vertices[left], &ranks.vertices[right]];
    let between = if left.is_bend() && right.is_bend() { BETWEEN_BENDS } else { BETWEEN };
    left.right + between + right.left
}

fn side_by_side(ranks: &Ranks) -> Vec<f64> {
    let mut x = vec![0.0; ranks.vertices.len()];
    for order in &ranks.orders {
        for pair in order.windows(2) {
            x[pair[1]] = x[pair[0]] + apart(ranks, pair[0], pair[1]);
        }
        let middle = order.last().map_or(0.0, |last| x[*last] / 2.0);
        for vertex in order {
            x[*vertex] -= middle;
        }
    }
    x
}

/// Vertices that touch each other and move together.
struct VertexGroup {
    /// The sum of the weighted target positions, relative to the first vertex.
    target: f64,
    weight: f64,
    len: usize,
}

/// Places the vertices of a rank, in their order, with the least squared distance from their target positions. A group
/// that would overlap the one before it is merged with it.
fn place_rank(ranks: &Ranks, order: &[usize], sides: &[&[Vec<(usize, f64)>]], x: &mut [f64]) {
    let mut groups: Vec<VertexGroup> = Vec::with_capacity(order.len());
    let mut offsets = Vec::with_capacity(order.len());
    let mut offset = 0.0;
    for (index, &vertex) in order.iter().enumerate() {
        if index > 0 {
            offset += apart(ranks, order[index - 1], vertex);
        }
        offsets.push(offset);
        let (target, weight) = target(vertex, sides, x);
        let mut group = VertexGroup { target: (target - offset) * weight, weight, len: 1 };
        while let Some(before) = groups.pop_if(|before| before.target / before.weight >= group.target / group.weight) {
            group.target += before.target;
            group.weight += before.weight;
            group.len += before.len;
        }
        groups.push(group);
    }
    let mut placed = order.iter().zip(&offsets);
    for group in groups {
        for (vertex, offset) in placed.by_ref().take(group.len) {
            x[*vertex] = group.target / group.weight + offset;
        }
    }
}

/// Returns the target position of a vertex, and its weight: the mean of its neighbours, or its current position.
fn target(vertex: usize, sides: &[&[Vec<(usize, f64)>]], x: &[f64]) -> (f64, f64) {
    let near = sides.iter().flat_map(|side| &side[vertex]);
    let (sum, weight) = near.fold((0.0, 0.0), |(sum, all), (other, weight)| (sum + x[*other] * weight, all + weight));
    if weight > 0.0 { (sum / weight, weight) } else { (x[vertex], 0.01) }
}

fn bands(ranks: &Ranks, x: &[f64]) -> Vec<(f64, f64)> {
    let mut widest = vec![0.0_f64; ranks.orders.len()];
    for segment in &ranks.segments {
        let rank = ranks.vertices[segment.upper].rank;
        widest[rank] = widest[rank].max((x[segment.upper] - x[segment.lower]).abs());
    }
    let mut top = 0.0;
    let mut bands = Vec::with_capacity(ranks.orders.len());
    for (order, widest) in ranks.orders.iter().zip(widest) {
        let height = order.iter().map(|vertex| ranks.vertices[*vertex].size.height).fold(0.0, f64::max);
        bands.push((top, top + height));
        top += height + (widest * GAP_PER_SIDE).clamp(GAP.0, GAP.1);
    }
    bands
}
