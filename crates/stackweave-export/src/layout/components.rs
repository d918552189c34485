//! Moves the connected components of the graph together: no arrow limits their distance, so their first positions may
//! be far apart.

use super::ranks::Ranks;

/// Moves each component, the leftmost first, as far to the left as its neighbours allow. `apart` returns the distance
/// that the centres of two neighbours need.
pub(super) fn pull_together(ranks: &Ranks, x: &mut [f64], apart: impl Fn(usize, usize) -> f64) {
    let component_of = components(ranks);
    let mut beside = vec![None; x.len()];
    for pair in ranks.orders.iter().flat_map(|order| order.windows(2)) {
        beside[pair[1]] = Some(pair[0]).filter(|left| component_of[*left] != component_of[pair[1]]);
    }
    for part in from_left_to_right(ranks, &component_of, x) {
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

/// Returns for each vertex a representative of its component.
fn components(ranks: &Ranks) -> Vec<usize> {
    let mut parents: Vec<usize> = (0..ranks.vertices.len()).collect();
    for segment in &ranks.segments {
        let [upper, lower] = [segment.upper, segment.lower].map(|vertex| find(&mut parents, vertex));
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

fn from_left_to_right(ranks: &Ranks, component_of: &[usize], x: &[f64]) -> Vec<Vec<usize>> {
    let mut parts = vec![Vec::new(); x.len()];
    for (vertex, part) in component_of.iter().enumerate() {
        parts[*part].push(vertex);
    }
    parts.retain(|part| !part.is_empty());
    let left =
        |part: &Vec<usize>| part.iter().map(|at| x[*at] - ranks.vertices[*at].left).fold(f64::INFINITY, f64::min);
    parts.sort_by(|one, other| left(one).total_cmp(&left(other)));
    parts
}
