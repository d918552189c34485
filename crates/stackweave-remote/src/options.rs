//! Options of an inspection.

use std::time::Duration;

/// The options of reading a process, and a limit of its time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InspectionOptions {
    /// Whether Python frames are read.
    pub python: bool,
    /// Whether native frames are read.
    pub native: bool,
    /// The time that a thread may take to stop. One that waits in the kernel may never stop, and the others wait for it
    /// meanwhile.
    pub stop_timeout: Duration,
    /// The naming of native frames.
    pub symbolize: stackweave_symbolize::SymbolizerOptions,
}

impl Default for InspectionOptions {
    fn default() -> Self {
        Self {
            python: true,
            native: true,
            stop_timeout: Duration::from_millis(500),
            symbolize: stackweave_symbolize::SymbolizerOptions::default(),
        }
    }
}
