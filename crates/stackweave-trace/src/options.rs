//! How a trace is made.

use std::fmt;
use std::time::Duration;

use stackweave_core::Pattern;
use stackweave_cpython::calls::Mechanism;

use crate::describer::Describer;

/// When a function is called too often, and for too short a time, to be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demotion {
    /// After that many calls,
    pub calls: u32,
    /// if they took less than this on average.
    pub mean: Duration,
}

/// Functions whose calls are described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedFunctions {
    /// Which: a pattern for `function:`, or for the module's name and the function's, with a dot between. It stands for
    /// the whole of it.
    pub pattern: Pattern,
    /// Whether the native stack is recorded, too.
    pub native: bool,
}

/// How a trace is made.
pub struct TraceOptions {
    /// Whether native functions are told of.
    pub c_calls: bool,
    /// How calls are heard of; the best way if none is said.
    pub mechanism: Option<Mechanism>,
    /// If there are any: only functions that one of them stands for.
    pub include: Vec<Pattern>,
    /// No function that one of them stands for.
    pub exclude: Vec<Pattern>,
    /// Functions that are left out without a word: those of whoever traces.
    pub own: Vec<Pattern>,
    /// Shorter calls are left out.
    pub min_duration: Duration,
    /// Deeper calls are left out.
    pub max_depth: Option<usize>,
    /// When functions are not told of any more.
    pub demotion: Option<Demotion>,
    /// What begins after that many events is left out.
    pub max_events: Option<u64>,
    /// Whether tasks are named.
    pub tasks: bool,
    /// Whether what is open around the start is shown.
    pub outer: bool,
    /// Functions whose calls are described.
    pub described: Vec<DescribedFunctions>,
    /// Who knows what only Python does.
    pub describer: Box<dyn Describer>,
}

impl fmt::Debug for TraceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceOptions").field("mechanism", &self.mechanism).finish_non_exhaustive()
    }
}

impl TraceOptions {
    /// Everything is recorded but native functions.
    pub fn new(describer: Box<dyn Describer>) -> Self {
        Self {
            c_calls: false,
            mechanism: None,
            include: Vec::new(),
            exclude: Vec::new(),
            own: Vec::new(),
            min_duration: Duration::ZERO,
            max_depth: None,
            demotion: None,
            max_events: None,
            tasks: true,
            outer: true,
            described: Vec::new(),
            describer,
        }
    }
}
