//! The options of a trace.

use std::fmt;
use std::time::Duration;

use stackweave_core::Pattern;
use stackweave_cpython::calls::Mechanism;

use crate::describer::Describer;

/// The condition under which a function is called too often, and for too short a time, to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demotion {
    /// The function is demoted after that many calls,
    pub calls: u32,
    /// if their mean time is below this.
    pub mean: Duration,
}

/// Functions whose calls are described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedFunctions {
    /// A pattern for `function:`, or for the names of module and function, separated by a dot. It must match all of it.
    pub pattern: Pattern,
    /// Whether the native stack is recorded, too.
    pub native: bool,
}

/// The options of a trace.
pub struct TraceOptions {
    /// Whether calls of native functions are recorded.
    pub c_calls: bool,
    /// The mechanism that reports calls; `None`: the best one.
    pub mechanism: Option<Mechanism>,
    /// If there are any, only functions that match one of these are recorded.
    pub include: Vec<Pattern>,
    /// Functions that match one of these are not recorded.
    pub exclude: Vec<Pattern>,
    /// Functions of the tracer itself: they are excluded and not counted.
    pub own: Vec<Pattern>,
    /// Shorter calls are not recorded.
    pub min_duration: Duration,
    /// Deeper calls are not recorded.
    pub max_depth: Option<usize>,
    /// The condition under which functions are no longer recorded.
    pub demotion: Option<Demotion>,
    /// Calls that begin after that many events are not recorded.
    pub max_events: Option<u64>,
    /// Whether tasks are named.
    pub tasks: bool,
    /// Whether calls that are open at the start are recorded.
    pub outer: bool,
    /// Functions whose calls are described.
    pub described: Vec<DescribedFunctions>,
    /// Answers queries that only Python can answer.
    pub describer: Box<dyn Describer>,
}

impl fmt::Debug for TraceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceOptions").field("mechanism", &self.mechanism).finish_non_exhaustive()
    }
}
