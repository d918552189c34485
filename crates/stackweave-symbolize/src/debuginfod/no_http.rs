//! Replaces the HTTP client in builds without it.

use std::time::Duration;

use super::cache::UnfinishedDownload;
use super::error::DebuginfodError;

/// A client without downloads.
#[derive(Debug, Default)]
pub(super) struct Client(());

impl Client {
    #[expect(clippy::unused_self, reason = "the same signature as in `http.rs`")]
    pub(super) fn download(
        &self,
        _url: &str,
        _limit: Duration,
        _max_size: u64,
        _out: &mut UnfinishedDownload,
    ) -> Result<(), DebuginfodError> {
        Err(DebuginfodError::NotBuilt)
    }
}
