//! The twin of the HTTP client for builds without it.

use std::time::Duration;

use super::cache::Unfinished;
use super::error::DebuginfodError;

/// A client that answers nothing.
#[derive(Debug, Default)]
pub(super) struct Client(());

impl Client {
    #[expect(clippy::unused_self, reason = "the contract of its twin")]
    pub(super) fn download(
        &self,
        _url: &str,
        _limit: Duration,
        _max_size: u64,
        _out: &mut Unfinished,
    ) -> Result<(), DebuginfodError> {
        Err(DebuginfodError::NotBuilt)
    }
}
