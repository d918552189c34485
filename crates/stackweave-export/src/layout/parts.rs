//! Parts that no arrow ties together: nothing but their first places says where they stand, so there may be much room
//! between them. Here they are pulled together.

use super::ranks::Ranks;

/// Moves each part, the leftmost first, as far to the left as what stands beside it allows. `apart` says how far the middles
/// of two that stand side by side must be apart.
pub(super) fn pull_together(ranks: &Ranks, x: &mut [f64], apart: impl Fn(usize, usize) -> f64) {
    let part_of = parts(ranks);
    let mut beside = vec![None; x.len()];
    for pair in ranks.orders.iter().flat_map(|order| order.windows(2)) {
        beside[pair[1]] = Some(pair[0]).filter(|left| part_of[*left] != part_of[pair[1]]);
    }
    for part in from_left_to_right(ranks, &part_of, x) {
        let room = part
            .iter()
            .filter_map(|vertex| beside[*vertex].map(|left| x[*vertex] - x[left] - apart(left, *vertex)))
            .fold(f64::INFINITY, f64::min);
        if room.is_finite() && room > 0.0 {
            for vertex in part {
                x[vertex] -= room;
            }
        }
    }
}

/// For each vertex one that stands for its part.
fn parts(ranks: &Ranks) -> Vec<usize> {
    let mut parents: Vec<usize> = (0..ranks.vertices.len()).collect();
    for piece in &ranks.pieces {
        let [upper, lower] = [piece.upper, piece.lower].map(|vertex| find(&mut parents, vertex));
        parents[upper] = lower;
    }
    (0..parents.len()).map(|vertex| find(&mut parents, vertex)).collect()
}

fn find(parents: &mut [usize], mut vertex: usize) -> usize {
    while parents[vertex] != vertex {
        parents[vertex] = parents[parents[vertex]];
        vertex = parents[vertex];
    }
    vertex
}

fn from_left_to_right(ranks: &Ranks, part_of: &[usize], x: &[f64]) -> Vec<Vec<usize>> {
    let mut parts = vec![Vec::new(); x.len()];
    for (vertex, part) in part_of.iter().enumerate() {
        parts[*part].push(vertex);
    }
    parts.retain(|part| !part.is_empty());
    let left =
        |part: &Vec<usize>| part.iter().map(|at| x[*at] - ranks.vertices[*at].left).fold(f64::INFINITY, f64::min);
    parts.sort_by(|one, other| left(one).total_cmp(&left(other)));
    parts
}
