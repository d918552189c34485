//! Resolves captured stacks to named frames, and aggregates recordings to profiles.
//!
//! A captured stack is an integer, and its frames are words. A [`Resolver`] names them in batches: each distinct word
//! once, for all stacks that contain it. It depends on no interpreter and no loader; a [`FrameNames`] implementation
//! provides both.
//!
//! ```
//! use stackweave_core::StackId;
//! use stackweave_profile::{FrameNames, Resolver, write_json};
//! use stackweave_store::StackTable;
//! use stackweave_symbolize::SymbolizerOptions;
//!
//! # fn example(stacks: &StackTable, captured: &[StackId], names: &dyn FrameNames) -> std::io::Result<()> {
//! let resolver = Resolver::new(SymbolizerOptions::default());
//! let resolved = resolver.resolve(stacks, captured, names);
//! for frame in resolved.iter().flat_map(|stack| stack.iter()) {
//!     println!("{} {} at {:?}:{:?}", frame.kind, frame.name, frame.filename, frame.position.line);
//! }
//! write_json(&mut std::io::stdout(), &resolved)
//! # }
//! ```
//!
//! A recording becomes a [`Profile`]: a call tree with calls, self and total cost of one of several [`Measure`]s, for
//! selected threads and times. Everything else is computed from that tree: [`Statistics`] by function in the terms of
//! `cProfile`, a [`View`] with hidden frames, and a [`Diff`] of two profiles.
//!
//! ```
//! use stackweave_profile::{AggregateOptions, Statistics, aggregate};
//! use stackweave_recording::Recording;
//! use stackweave_symbolize::{SymbolizerOptions, Symbolizer};
//!
//! # fn example(path: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//! let recording = Recording::open(path)?;
//! let symbolizer = Symbolizer::new(SymbolizerOptions::default());
//! let options = AggregateOptions::default();
//! let profile = aggregate(recording.processes(), &options, Some(&symbolizer), &mut |_bytes| {})?.merged();
//! for (id, cost) in Statistics::of(&profile).functions() {
//!     println!("{} {} calls", profile.functions().function(id).full_name(), cost.calls);
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod aggregate;
mod frame;
mod json;
mod known_frames;
pub mod live;
pub mod memory;
mod module_history;
mod native_frames;
mod packed_numbers;
mod resolver;
mod script_frames;
mod stack_batch;
mod timed_calls;
pub mod timing;
mod trace_notes;
pub mod usage;
mod word_hash;

pub use aggregate::{
    AggregateOptions, Aggregated, CallStatistics, CallTree, Children, CodeOrigin, Cost, Diff, DiffNode,
    DifferentMeasures, Edge, EveryMeasure, Filter, FrameIndex, Function, FunctionDiff, FunctionId, FunctionModule,
    FunctionTable, Grouping, Hidden, Measure, MeasuredProfile, Node, NodeId, PartProfile, ProcessObserver, Profile,
    ProfileCounts, ProfileFrame, RecordedCost, RecordedCosts, RecordedNames, RecordedStack, Statistics, ValueChange,
    View, aggregate,
};
pub use frame::{Frame, FrameKind};
pub use json::write_json;
pub use resolver::Resolver;
pub use script_frames::place_scripts;
pub use stackweave_core::{FrameNames, Pattern, PatternScope};
pub use timed_calls::{TimedCall, TimedCalls, TimedFunction, is_edge_open};
pub use trace_notes::TraceNotes;
pub use word_hash::WordMap;
