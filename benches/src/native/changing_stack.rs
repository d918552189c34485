//! A capture at each node of a call tree: the inner part of the stack differs every time.

use std::io;

use super::stage::{self, Code, Scene};
use super::{DEPTHS, ffi};
use crate::options::Effort;
use crate::peers::Unwinder;
use crate::report::Case;
use crate::statistics::median_excess;

/// The number of nodes in the binary tree of twelve levels.
const NODES: f64 = 4095.0;

pub(super) fn measure(
    unwinders: &[Unwinder],
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    for depth in DEPTHS {
        let scene = Scene {
            body: ffi::bench_body_tree,
            ..Scene::repeated(Code::WithoutFramePointers, depth, effort.pick(3, 15))
        };
        let results = stage::run(&scene, unwinders)?;
        let net = |samples: &[f64]| median_excess(samples, &results.calls_alone).map(|walk| walk / NODES);
        done(Case {
            bench: "native/changing-stack",
            name: format!("tree of 4095 on nofp {depth}"),
            unit: "ns",
            entries: results.entries(net),
        })?;
    }
    Ok(())
}
