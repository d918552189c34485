//! Assigns each box to a layer: below all boxes that point to it, close to them, and in layers of limited width.

/// A link that points down, after it was reversed if necessary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    pub(super) upper: usize,
    pub(super) lower: usize,
    pub(super) weight: f64,
}

/// Returns the layer of each box, from 0 at the top.
pub(super) fn layers(boxes: usize, arrows: &[Arrow]) -> Vec<usize> {
    let graph = Graph::new(boxes, arrows);
    let mut layers = vec![0; boxes];
    graph.push_down(&mut layers);
    graph.tighten(&mut layers);
    graph.limit(&mut layers, widest(boxes));
    close_gaps(&mut layers);
    layers
}

/// Returns the maximum number of boxes in a layer, so that the picture is not much wider than high.
fn widest(boxes: usize) -> usize {
    (boxes * 2).isqrt().max(6)
}

struct Graph<'a> {
    arrows: &'a [Arrow],
    incoming: Vec<Vec<usize>>,
    outgoing: Vec<Vec<usize>>,
    /// The boxes in topological order.
    sorted: Vec<usize>,
}

impl<'a> Graph<'a> {
    fn new(boxes: usize, arrows: &'a [Arrow]) -> Self {
        let mut incoming: Vec<Vec<usize>> = vec![Vec::new(); boxes];
        let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); boxes];
        for (index, arrow) in arrows.iter().enumerate() {
            incoming[arrow.lower].push(index);
            outgoing[arrow.upper].push(index);
        }
        let mut waiting: Vec<usize> = incoming.iter().map(Vec::len).collect();
        let mut sorted: Vec<usize> = (0..boxes).filter(|id| waiting[*id] == 0).collect();
        let mut next = 0;
        while let Some(&id) = sorted.get(next) {
            next += 1;
            for index in &outgoing[id] {
                let lower = arrows[*index].lower;
                waiting[lower] -= 1;
                if waiting[lower] == 0 {
                    sorted.push(lower);
                }
            }
        }
        Self { arrows, incoming, outgoing, sorted }
    }

    /// Returns the lowest layer that has an arrow to this box.
    fn above(&self, id: usize, layers: &[usize]) -> Option<usize> {
        self.incoming[id].iter().map(|index| layers[self.arrows[*index].upper]).max()
    }

    /// Returns the highest layer that this box has an arrow to.
    fn below(&self, id: usize, layers: &[usize]) -> Option<usize> {
        self.outgoing[id].iter().map(|index| layers[self.arrows[*index].lower]).min()
    }

    /// Moves down each box that is not below all boxes that point to it.
    fn push_down(&self, layers: &mut [usize]) {
        for &id in &self.sorted {
            let least = self.above(id, layers).map_or(0, |above| above + 1);
            layers[id] = layers[id].max(least);
        }
    }

    /// Moves boxes to where their arrows are shortest, until nothing moves.
    fn tighten(&self, layers: &mut [usize]) {
        let weight = |indices: &[usize]| indices.iter().map(|index| self.arrows[*index].weight).sum::<f64>();
        for _ in 0..layers.len() {
            let mut has_moved = false;
            for &id in self.sorted.iter().rev() {
                let Some(below) = self.below(id, layers) else { continue };
                let least = self.above(id, layers).map_or(0, |above| above + 1);
                let pulls_down = weight(&self.outgoing[id]) > weight(&self.incoming[id]);
                let best = if pulls_down { below - 1 } else { least };
                has_moved |= best != layers[id];
                layers[id] = best;
            }
            if !has_moved {
                break;
            }
        }
    }

    /// Moves boxes of layers that are too wide to the next layer, first those with the shortest chains below them.
    fn limit(&self, layers: &mut [usize], most: usize) {
        let mut heights = vec![0_usize; layers.len()];
        for &id in self.sorted.iter().rev() {
            let lower = |index: &usize| heights[self.arrows[*index].lower] + 1;
            heights[id] = self.outgoing[id].iter().map(lower).max().unwrap_or(0);
        }
        let mut layer = 0;
        while layers.iter().any(|other| *other > layer) || layers.iter().filter(|other| **other == layer).count() > most
        {
            let mut here: Vec<usize> = (0..layers.len()).filter(|id| layers[*id] == layer).collect();
            here.sort_by_key(|id| (core::cmp::Reverse(heights[*id]), *id));
            for id in here.iter().skip(most) {
                layers[*id] += 1;
            }
            if here.len() > most {
                self.push_down(layers);
            }
            layer += 1;
        }
    }
}

/// Removes empty layers.
fn close_gaps(layers: &mut [usize]) {
    let mut used: Vec<usize> = layers.to_vec();
    used.sort_unstable();
    used.dedup();
    for layer in layers {
        *layer = used.partition_point(|other| other < layer);
    }
}
