//! Aggregates recordings to profiles: call trees with calls and costs.

mod build;
mod call_tree;
mod collector;
mod diff;
mod every_measure;
mod function;
mod measure;
mod measure_text;
mod memory_costs;
mod options;
mod origin;
mod profile;
mod recorded_costs;
mod recorded_names;
mod recordings;
mod span_tree;
mod stack_costs;
mod statistics;
mod view;

pub use call_tree::{CallTree, Children, Cost, Node, NodeId};
pub(crate) use collector::GroupCosts;
pub use diff::{Change, Diff, DiffNode, FunctionDiff};
pub use every_measure::{EveryMeasure, MeasuredProfile, ProcessObserver};
pub use function::{FrameIndex, Function, FunctionId, FunctionModule, FunctionTable, ProfileFrame};
pub(crate) use measure::DeviceMeasure;
pub use measure::Measure;
pub use options::{AggregateOptions, Grouping};
pub use origin::Origin;
pub use profile::{Counts, DifferentMeasures, Profile};
pub use recorded_costs::{RecordedCost, RecordedCosts, RecordedStack};
pub use recorded_names::RecordedNames;
pub use recordings::{Aggregated, PartProfile, aggregate};
pub(crate) use recordings::{offsets, profiles_of_rows, ranges};
pub(crate) use span_tree::{OpenSpans, SpanTree};
pub use statistics::{CallStatistics, Edge, Statistics};
pub use view::{Filter, Hidden, View};
