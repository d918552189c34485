//! What a phase is known by until it ends.

/// Says which phase was begun: its thread, its place on the thread's stack, and a number that no other phase of the thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    pub(crate) thread: u64,
    pub(crate) number: u64,
    pub(crate) depth: u32,
}

impl Token {
    /// Of a phase that was not begun. No stack has the number 0.
    pub(crate) const NONE: Self = Self { thread: 0, number: 0, depth: 0 };

    /// How many phases were open around it when it began.
    pub const fn depth(self) -> usize {
        self.depth as usize
    }
}

/// How a phase has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// As it should.
    #[default]
    Done,
    /// It has failed.
    Failed,
}
