//! Repeated captures of the same stack, with everything warm.

use std::io;

use super::DEPTHS;
use super::stage::{self, Code, Scene};
use crate::options::Effort;
use crate::peers::Unwinder;
use crate::report::Case;
use crate::statistics::median;

pub(super) fn measure(
    unwinders: &[Unwinder],
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    for code in [Code::WithoutFramePointers, Code::WithFramePointers] {
        for depth in DEPTHS {
            let scene = Scene::repeated(code, depth, effort.pick(11, 41));
            let results = stage::run(&scene, unwinders)?;
            done(Case {
                bench: "native/same-stack",
                name: format!("{code} {depth}"),
                unit: "ns",
                entries: results.entries(median),
            })?;
        }
    }
    Ok(())
}
