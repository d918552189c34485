//! Tokens that identify open phases.

/// Identifies a phase by its thread, its depth, and a number that no other phase of the thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    pub(crate) thread: u64,
    pub(crate) number: u64,
    pub(crate) depth: u32,
}

impl Token {
    /// The token of a phase that was refused. No stack has the number 0.
    pub(crate) const NONE: Self = Self { thread: 0, number: 0, depth: 0 };

    /// Returns the number of enclosing phases when the phase began.
    pub const fn depth(self) -> usize {
        self.depth as usize
    }
}

/// The outcome of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It succeeded.
    #[default]
    Done,
    /// It failed.
    Failed,
}
