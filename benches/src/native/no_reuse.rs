//! Captures with every rule known, but with the whole stack at other addresses than last time, so that nothing is
//! re-used.

use std::io;

use super::stage::{self, Code, Scene};
use super::{DEPTHS, ffi};
use crate::options::Effort;
use crate::peers::Unwinder;
use crate::report::Case;
use crate::statistics::median_excess;

pub(super) fn measure(
    unwinders: &[Unwinder],
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    for depth in DEPTHS {
        let scene = Scene {
            body: ffi::bench_body_shifted,
            at_base: true,
            ..Scene::repeated(Code::WithoutFramePointers, depth, effort.pick(11, 41))
        };
        let results = stage::run(&scene, unwinders)?;
        let net = |samples: &[f64]| median_excess(samples, &results.calls_alone);
        done(Case {
            bench: "native/no-reuse",
            name: format!("shifted nofp {depth}"),
            unit: "ns",
            entries: results.entries(net),
        })?;
    }
    Ok(())
}
