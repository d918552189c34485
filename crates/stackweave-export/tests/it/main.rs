//! The tests of the exporters, as one program.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test must fail if it cannot be set up")]
#![allow(clippy::print_stdout, reason = "tests print skipped checks and measurements")]
#![allow(unreachable_pub, reason = "the modules are those of one program")]
#![allow(clippy::cast_precision_loss, reason = "shares are compared with a tolerance")]

mod allocations;
mod callgraph;
mod chrome;
mod common;
mod damage;
mod depth;
mod dot;
mod examples;
mod external_graph;
mod firefox;
mod flamegraph;
mod folded;
mod hidden;
mod host_events;
mod json;
mod memory;
mod memory_curve;
mod parquet;
mod perfetto;
mod phases;
mod pprof;
mod pstats;
mod pytorch;
mod pytorch_cuda;
mod pytorch_kept_blocks;
mod pytorch_random;
mod report;
mod report_call_lines;
mod report_devices;
mod report_memory;
mod report_streaming;
mod report_timeline;
mod size_limit;
mod speedscope;
mod streaming_memory;
mod svg;
mod trace_processor;
mod traced;
mod unknown_kinds;

use stackweave_testkit::counting_allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
