//! Orders the vertices of ranks: sweeps down and up sort each rank by the mean position of its neighbours, and the
//! order with the fewest crossings is kept.

use super::ranks::Ranks;

/// The number of sweeps, down and up.
const SWEEPS: usize = 16;

/// Graphs with more vertices get fewer sweeps.
const LARGE_GRAPH: usize = 20_000;

pub(super) fn order(ranks: &mut Ranks) {
    let neighbours = Neighbours::of(ranks);
    let mut best = (crossings(ranks, &neighbours), ranks.orders.clone());
    let sweeps = if ranks.vertices.len() > LARGE_GRAPH { SWEEPS / 4 } else { SWEEPS };
    let count = ranks.orders.len();
    for sweep in 0..sweeps {
        if best.0 == 0 {
            break;
        }
        let is_down = sweep % 2 == 0;
        for step in 1..count {
            let rank = if is_down { step } else { count - 1 - step };
            sort_rank(ranks, rank, if is_down { &neighbours.above } else { &neighbours.below });
        }
        swap_neighbours(ranks, &neighbours);
        let now = crossings(ranks, &neighbours);
        if now < best.0 {
            best = (now, ranks.orders.clone());
        }
    }
    ranks.orders = best.1;
}

struct Neighbours {
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
}

impl Neighbours {
    fn of(ranks: &Ranks) -> Self {
        let mut above = vec![Vec::new(); ranks.vertices.len()];
        let mut below = vec![Vec::new(); ranks.vertices.len()];
        for segment in &ranks.segments {
            above[segment.lower].push(segment.upper);
            below[segment.upper].push(segment.lower);
        }
        Self { above, below }
    }
}

/// Returns the position of each vertex in its rank.
fn positions(ranks: &Ranks) -> Vec<usize> {
    let mut positions = vec![0; ranks.vertices.len()];
    for (position, vertex) in ranks.orders.iter().flat_map(|order| order.iter().enumerate()) {
        positions[*vertex] = position;
    }
    positions
}

#[expect(clippy::cast_precision_loss, reason = "a rank has few vertices")]
fn sort_rank(ranks: &mut Ranks, rank: usize, neighbours: &[Vec<usize>]) {
    let is_above = rank > 0 && neighbours_are_above(ranks, rank, neighbours);
    let fixed = if is_above { rank - 1 } else { (rank + 1).min(ranks.orders.len() - 1) };
    let mut positions = vec![0.0; ranks.vertices.len()];
    for (position, vertex) in ranks.orders[fixed].iter().enumerate() {
        positions[*vertex] = position as f64;
    }
    let mut keys: Vec<(f64, usize)> = Vec::with_capacity(ranks.orders[rank].len());
    let mut last = 0.0;
    for &vertex in &ranks.orders[rank] {
        let near = &neighbours[vertex];
        if !near.is_empty() {
            last = near.iter().map(|other| positions[*other]).sum::<f64>() / near.len() as f64;
        }
        keys.push((last, vertex));
    }
    keys.sort_by(|a, b| a.0.total_cmp(&b.0));
    ranks.orders[rank] = keys.into_iter().map(|(_, vertex)| vertex).collect();
}

fn neighbours_are_above(ranks: &Ranks, rank: usize, neighbours: &[Vec<usize>]) -> bool {
    let mut near = ranks.orders[rank].iter().flat_map(|vertex| &neighbours[*vertex]);
    near.next().is_none_or(|other| ranks.vertices[*other].rank < rank)
}

/// Swaps neighbours in a rank if that removes crossings.
fn swap_neighbours(ranks: &mut Ranks, neighbours: &Neighbours) {
    let mut positions = positions(ranks);
    for order in &mut ranks.orders {
        for right in 1..order.len() {
            let (a, b) = (order[right - 1], order[right]);
            let mut gain = 0_i64;
            for near in [&neighbours.above, &neighbours.below] {
                gain += pair_crossings(&near[a], &near[b], &positions) - pair_crossings(&near[b], &near[a], &positions);
            }
            if gain > 0 {
                order.swap(right - 1, right);
                positions.swap(a, b);
            }
        }
    }
}

/// Returns how many arrows of the left vertex cross arrows of the right one.
fn pair_crossings(left: &[usize], right: &[usize], positions: &[usize]) -> i64 {
    let crosses = |a: &usize| right.iter().filter(|b| positions[*a] > positions[**b]).count();
    left.iter().map(crosses).map(|count| i64::try_from(count).unwrap_or(i64::MAX)).sum()
}

/// Returns the number of crossings in all ranks.
fn crossings(ranks: &Ranks, neighbours: &Neighbours) -> u64 {
    let positions = positions(ranks);
    let mut sum = 0;
    for pair in ranks.orders.windows(2) {
        let mut ends: Vec<usize> = Vec::new();
        for vertex in &pair[0] {
            let start = ends.len();
            ends.extend(neighbours.below[*vertex].iter().map(|lower| positions[*lower]));
            ends[start..].sort_unstable();
        }
        sum += inversions(&ends, pair[1].len());
    }
    sum
}

/// Counts pairs in the wrong order, with a Fenwick tree.
fn inversions(ends: &[usize], most: usize) -> u64 {
    let mut counts = vec![0_u64; most + 1];
    let mut sum = 0;
    for (before, end) in (0_u64..).zip(ends) {
        let (mut at, mut not_greater) = (end + 1, 0);
        while at > 0 {
            not_greater += counts[at];
            at &= at - 1;
        }
        sum += before - not_greater;
        at = end + 1;
        while at <= most {
            counts[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inversions_equal_those_counted_by_hand() {
        assert_eq!(inversions(&[0, 1, 2, 2], 3), 0);
        assert_eq!(inversions(&[2, 1, 0], 3), 3);
        assert_eq!(inversions(&[1, 0, 1, 0], 2), 3);
    }
}
