//! Selects the links that must be reversed to leave no cycle.

use super::GraphLink;

#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitState {
    New,
    /// On the current path of the search.
    Open,
    Done,
}

/// Returns for each link whether it points back to a box on the path above it. Self links do not count.
pub(super) fn backward(boxes: usize, links: &[GraphLink]) -> Vec<bool> {
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); boxes];
    let mut is_called = vec![false; boxes];
    for (index, link) in links.iter().enumerate().filter(|(_, link)| link.from != link.to) {
        outgoing[link.from].push(index);
        is_called[link.to] = true;
    }
    for out in &mut outgoing {
        out.sort_by(|a, b| links[*b].weight.total_cmp(&links[*a].weight));
    }
    let mut state = vec![VisitState::New; boxes];
    let mut backward = vec![false; links.len()];
    let roots = (0..boxes).filter(|start| !is_called[*start]).chain(0..boxes);
    let mut path: Vec<(usize, usize)> = Vec::new();
    for root in roots {
        if state[root] == VisitState::New {
            state[root] = VisitState::Open;
            path.push((root, 0));
        }
        while let Some((at, next)) = path.last_mut() {
            let Some(&index) = outgoing[*at].get(*next) else {
                state[*at] = VisitState::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let to = links[index].to;
            match state[to] {
                VisitState::Open => backward[index] = true,
                VisitState::Done => {}
                VisitState::New => {
                    state[to] = VisitState::Open;
                    path.push((to, 0));
                }
            }
        }
    }
    backward
}
