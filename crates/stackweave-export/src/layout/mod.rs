//! Lays out boxes and arrows between them in layers, so that most arrows point down.
//!
//! Arrows of cycles are reversed ([`acyclic`]), boxes get layers ([`layers`]), arrows get a vertex in each rank that
//! they cross and one for their label ([`ranks`]), the order inside ranks is chosen so that few arrows cross
//! ([`order`]), then vertices get coordinates ([`coordinates`], [`components`]) and arrows their curves ([`route`]).
//! Labels and bends are vertices with widths, like boxes, so nothing overlaps.

mod acyclic;
mod components;
mod coordinates;
mod layers;
mod order;
mod ranks;
mod route;

use ranks::Ranks;

pub(crate) use route::Route;

/// The size of a box or label.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A link from one box to another, or to itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphLink {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The importance of a short arrow.
    pub(crate) weight: f64,
    pub(crate) label: Size,
}

/// A rectangle. `x` and `y` are its upper left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) size: Size,
}

impl Rect {
    pub(crate) fn centre_x(&self) -> f64 {
        self.x + self.size.width / 2.0
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.y + self.size.height
    }

    #[cfg(test)]
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.x < other.x + other.size.width
            && other.x < self.x + self.size.width
            && self.y < other.bottom()
            && other.y < self.bottom()
    }
}

/// The finished layout. Its upper left corner is at 0, 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct GraphLayout {
    pub(crate) boxes: Vec<Rect>,
    /// The arrows, by link.
    pub(crate) routes: Vec<Route>,
    pub(crate) size: Size,
}

/// The space between a box and the label of its self link.
const LOOP_WIDTH: f64 = 30.0;

/// Lays out boxes. Earlier boxes are more important, and are above later ones of the same cycle.
pub(crate) fn lay_out(boxes: &[Size], links: &[GraphLink]) -> GraphLayout {
    let backward = acyclic::backward(boxes.len(), links);
    let arrows: Vec<layers::Arrow> = links
        .iter()
        .zip(&backward)
        .filter(|(link, _)| link.from != link.to)
        .map(|(link, backward)| {
            let (upper, lower) = if *backward { (link.to, link.from) } else { (link.from, link.to) };
            layers::Arrow { upper, lower, weight: link.weight }
        })
        .collect();
    let layers = layers::layers(boxes.len(), &arrows);
    let mut ranks = Ranks::new(boxes, links, &backward, &layers);
    order::order(&mut ranks);
    let coordinates = coordinates::assign(&ranks);
    route::routes(&ranks, &coordinates, links, &backward)
}

#[cfg(test)]
mod tests;
