//! The first capture after the program has filled the caches with other data.

use std::io;

use super::ffi;
use super::stage::{self, Code, Scene};
use crate::machine;
use crate::options::Effort;
use crate::peers::Unwinder;
use crate::report::Case;
use crate::statistics::median;

pub(super) fn measure(
    unwinders: &[Unwinder],
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    let (first_level, second_level) = machine::data_caches();
    // Four times the cache leaves nothing in it; four times a first level still fits in any second level.
    for (what, sweep_bytes) in [("L1 evicted", 4 * first_level), ("L1+L2 evicted", 4 * second_level)] {
        for depth in [30, 100] {
            let scene = Scene {
                driver: ffi::bench_drive_evicted,
                sweep_bytes,
                ..Scene::repeated(Code::WithoutFramePointers, depth, effort.pick(100, 400))
            };
            let results = stage::run(&scene, unwinders)?;
            done(Case {
                bench: "native/evicted",
                name: format!("{what}, nofp {depth}"),
                unit: "ns",
                entries: results.entries(median),
            })?;
        }
    }
    Ok(())
}
