//! Boxes and arrows between them, laid out in layers so that most arrows point downwards.
//!
//! Arrows of cycles are turned around ([`acyclic`]), boxes get layers ([`layers`]), arrows get a vertex in each rank that they
//! cross and one for their label ([`ranks`]), the order inside ranks is chosen so that few arrows cross ([`order`]), then
//! everything gets its place ([`place`], [`parts`]) and arrows their curves ([`route`]). Labels and bends are vertices like boxes, with
//! widths of their own, so nothing can lie on anything else.

mod acyclic;
mod layers;
mod order;
mod parts;
mod place;
mod ranks;
mod route;

use ranks::Ranks;

pub(crate) use route::Route;

/// How much room something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// An arrow from one box to another, or to itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// How much it matters that it is short.
    pub(crate) weight: f64,
    pub(crate) label: Size,
}

/// A place. `x` and `y` are of its upper left corner.
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

/// Where everything is. The upper left corner of all is 0, 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) boxes: Vec<Rect>,
    /// By link.
    pub(crate) routes: Vec<Route>,
    pub(crate) size: Size,
}

/// Room between a box and the label of its arrow to itself.
const LOOP_WIDTH: f64 = 30.0;

/// Lays out boxes. Those that come first matter most, and stand above others of their cycles.
pub(crate) fn lay_out(boxes: &[Size], links: &[Link]) -> Layout {
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
    let places = place::place(&ranks);
    route::routes(&ranks, &places, links, &backward)
}

#[cfg(test)]
mod tests;
