//! The ranks with their vertices: boxes in even ranks, labels and bends of arrows in every rank that they cross.

use super::{GraphLink, LOOP_WIDTH, Size};

/// A box, a label or a bend of an arrow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vertex {
    pub(super) rank: usize,
    /// The space to the left and to the right of the point that arrows go through.
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) size: Size,
    pub(super) is_box: bool,
}

impl Vertex {
    /// Returns whether it is a point where an arrow passes boxes.
    pub(super) fn is_bend(&self) -> bool {
        !self.is_box && self.size.width == 0.0
    }
}

/// A segment of an arrow, from one rank to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrowSegment {
    pub(super) upper: usize,
    pub(super) lower: usize,
    /// The importance of a straight segment.
    pub(super) weight: f64,
}

#[derive(Debug)]
pub(super) struct Ranks {
    /// Boxes come first, by number.
    pub(super) vertices: Vec<Vertex>,
    pub(super) segments: Vec<ArrowSegment>,
    /// The vertices of each rank, from left to right.
    pub(super) orders: Vec<Vec<usize>>,
    /// For each link its vertices, from the upper box to the lower one.
    pub(super) chains: Vec<LinkVertices>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LinkVertices {
    pub(super) vertices: Vec<usize>,
    pub(super) label: usize,
}

/// Half the width of an arrow that passes boxes.
const BEND: f64 = 5.0;

impl Ranks {
    pub(super) fn new(boxes: &[Size], links: &[GraphLink], backward: &[bool], layers: &[usize]) -> Self {
        let vertices = boxes.iter().zip(layers).map(|(size, layer)| {
            let half = size.width / 2.0;
            Vertex { rank: layer * 2, left: half, right: half, size: *size, is_box: true }
        });
        let ranks = layers.iter().max().map_or(0, |last| last * 2 + 1);
        let mut this = Self {
            vertices: vertices.collect(),
            segments: Vec::new(),
            orders: vec![Vec::new(); ranks],
            chains: Vec::new(),
        };
        let (out, into) = degrees(boxes.len(), links, backward);
        for (link, backward) in links.iter().zip(backward) {
            let (upper, lower) = if *backward { (link.to, link.from) } else { (link.from, link.to) };
            if upper == lower {
                this.vertices[upper].right += LOOP_WIDTH + link.label.width;
                this.chains.push(LinkVertices::default());
            } else {
                let chain = this.chain((upper, lower), link, out[upper] > into[lower]);
                this.chains.push(chain);
            }
        }
        this.put_in_order();
        this
    }

    /// Adds the vertices between two boxes. The label is placed in the rank with fewer arrows.
    fn chain(&mut self, (upper, lower): (usize, usize), link: &GraphLink, is_label_low: bool) -> LinkVertices {
        let (first, last) = (self.vertices[upper].rank + 1, self.vertices[lower].rank - 1);
        let label_rank = if is_label_low { last } else { first };
        let mut chain = LinkVertices { vertices: vec![upper], label: 0 };
        for rank in first..=last {
            let is_label = rank == label_rank;
            let (half, size) = if is_label { (link.label.width / 2.0, link.label) } else { (BEND, Size::default()) };
            let vertex = self.vertices.len();
            if is_label {
                chain.label = vertex;
            }
            self.vertices.push(Vertex { rank, left: half, right: half, size, is_box: false });
            chain.vertices.push(vertex);
        }
        chain.vertices.push(lower);
        for pair in chain.vertices.windows(2) {
            let ends = pair.iter().filter(|vertex| self.vertices[**vertex].is_box).count();
            let weight = if ends == 0 { 8.0 } else { 1.0 + link.weight };
            self.segments.push(ArrowSegment { upper: pair[0], lower: pair[1], weight });
        }
        chain
    }

    /// Makes the initial order: each box is followed by its descendants, so that components are separate.
    fn put_in_order(&mut self) {
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); self.vertices.len()];
        let mut above: Vec<Vec<usize>> = vec![Vec::new(); self.vertices.len()];
        for segment in &self.segments {
            below[segment.upper].push(segment.lower);
            above[segment.lower].push(segment.upper);
        }
        let mut is_done = vec![false; self.vertices.len()];
        let mut starts: Vec<usize> = (0..self.vertices.len()).collect();
        starts.sort_by_key(|vertex| self.vertices[*vertex].rank);
        for start in starts {
            let mut waiting = vec![start];
            while let Some(vertex) = waiting.pop() {
                if core::mem::replace(&mut is_done[vertex], true) {
                    continue;
                }
                self.orders[self.vertices[vertex].rank].push(vertex);
                waiting.extend(above[vertex].iter().rev());
                waiting.extend(below[vertex].iter().rev());
            }
        }
    }
}

/// Returns how many arrows leave each box at the bottom, and how many reach it at the top.
fn degrees(boxes: usize, links: &[GraphLink], backward: &[bool]) -> (Vec<usize>, Vec<usize>) {
    let (mut out, mut into) = (vec![0; boxes], vec![0; boxes]);
    for (link, backward) in links.iter().zip(backward).filter(|(link, _)| link.from != link.to) {
        let (upper, lower) = if *backward { (link.to, link.from) } else { (link.from, link.to) };
        out[upper] += 1;
        into[lower] += 1;
    }
    (out, into)
}
