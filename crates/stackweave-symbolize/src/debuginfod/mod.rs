//! Debug files from debuginfod servers.

mod cache;
mod error;
#[cfg_attr(not(feature = "debuginfod"), path = "no_http.rs")]
mod http;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stackweave_core::BuildId;

use cache::{Cache, Cached};
pub(crate) use error::DebuginfodError;
use http::Client;

/// The time limit of a file, unless `DEBUGINFOD_TIMEOUT` sets it.
const DEFAULT_LIMIT: Duration = Duration::from_secs(10);
/// The maximum size of a file, unless `DEBUGINFOD_MAXSIZE` sets it.
const DEFAULT_MAX_SIZE: u64 = 2 << 30;

/// A client of some servers, with a cache that it shares with elfutils' clients.
#[derive(Debug)]
pub(crate) struct Debuginfod {
    servers: Vec<String>,
    /// The time limit of one file, for all servers together.
    limit: Duration,
    max_size: u64,
    cache: Cache,
    client: Client,
    /// The files that threads are fetching.
    in_progress: Mutex<HashSet<BuildId>>,
    fetch_done: Condvar,
}

impl Debuginfod {
    /// Creates a client from the environment variables that elfutils reads; `None` if they name no server or no
    /// folder for the cache.
    ///
    /// `DEBUGINFOD_TIMEOUT` is the time limit of the whole file; elfutils uses it for the beginning of the file.
    pub(crate) fn from_environment() -> Option<Self> {
        Self::from_variables(|variable| std::env::var_os(variable))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let number = |name| set(name)?.to_str()?.trim().parse::<u64>().ok().filter(|&number| number > 0);
        let folder = set("DEBUGINFOD_CACHE_PATH").map(PathBuf::from);
        let shared = || Some(PathBuf::from(set("XDG_CACHE_HOME")?).join("debuginfod_client"));
        let own = || Some(PathBuf::from(set("HOME")?).join(".cache/debuginfod_client"));
        let folder = folder.or_else(shared).or_else(own)?;
        let limit = number("DEBUGINFOD_TIMEOUT").map_or(DEFAULT_LIMIT, Duration::from_secs);
        let max_size = number("DEBUGINFOD_MAXSIZE").unwrap_or(DEFAULT_MAX_SIZE);
        Self::new(&set("DEBUGINFOD_URLS")?.to_string_lossy(), folder, limit, max_size)
    }

    /// Creates a client of `servers`, which are URLs separated by spaces. Words that are not URLs are settings of
    /// elfutils.
    fn new(servers: &str, folder: PathBuf, limit: Duration, max_size: u64) -> Option<Self> {
        let is_url = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
        let servers: Vec<String> = servers.split_whitespace().filter(is_url).map(str::to_owned).collect();
        (!servers.is_empty()).then(|| Self {
            servers,
            limit,
            max_size,
            cache: Cache::new(folder),
            client: Client::default(),
            in_progress: Mutex::default(),
            fetch_done: Condvar::new(),
        })
    }

    /// Returns the debug file of the module with this build id: from the cache, otherwise from the first server
    /// that has it.
    pub(crate) fn fetch_debug_info(&self, id: &BuildId) -> Result<PathBuf, DebuginfodError> {
        let deadline = Instant::now() + self.limit;
        if let Some(answer) = self.query_cache(id) {
            return answer;
        }
        let _permit = self.begin_fetch(id, deadline).ok_or(DebuginfodError::Late(self.limit))?;
        self.query_cache(id).unwrap_or_else(|| self.query_servers(id, deadline))
    }

    fn query_cache(&self, id: &BuildId) -> Option<Result<PathBuf, DebuginfodError>> {
        match self.cache.find(id) {
            Cached::Here(path) => Some(Ok(path)),
            Cached::Missing => Some(Err(DebuginfodError::NotFound)),
            Cached::Unknown => None,
        }
    }

    /// Queries each server in order, each with its share of the remaining time: a hanging server must not use all
    /// of it.
    fn query_servers(&self, id: &BuildId, deadline: Instant) -> Result<PathBuf, DebuginfodError> {
        let mut fault = DebuginfodError::NotFound;
        for (servers_left, server) in (1..=self.servers.len()).rev().zip(&self.servers) {
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(servers_left).unwrap_or(u32::MAX);
            if share.is_zero() {
                return Err(DebuginfodError::Late(self.limit));
            }
            match self.query_server(server, id, share) {
                Err(DebuginfodError::NotFound) => {}
                Err(other) => fault = other,
                found => return found,
            }
        }
        if fault == DebuginfodError::NotFound {
            self.cache.note_missing(id)?;
        }
        Err(fault)
    }

    fn query_server(&self, server: &str, id: &BuildId, limit: Duration) -> Result<PathBuf, DebuginfodError> {
        let url = format!("{}/buildid/{id}/debuginfo", server.trim_end_matches('/'));
        let mut unfinished = self.cache.begin(id)?;
        self.client.download(&url, limit, self.max_size, &mut unfinished)?;
        if !unfinished.is_elf() {
            return Err(DebuginfodError::NotElf);
        }
        let path = unfinished.path().to_owned();
        unfinished.keep()?;
        Ok(path)
    }

    /// Waits until no other thread is fetching this file.
    fn begin_fetch<'a>(&'a self, id: &'a BuildId, deadline: Instant) -> Option<FetchPermit<'a>> {
        let mut in_progress = self.in_progress();
        while in_progress.contains(id) {
            let left = deadline.checked_duration_since(Instant::now())?;
            let waited = self.fetch_done.wait_timeout(in_progress, left);
            in_progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        in_progress.insert(id.clone());
        Some(FetchPermit { client: self, id })
    }

    fn in_progress(&self) -> MutexGuard<'_, HashSet<BuildId>> {
        self.in_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Exclusive permission to fetch a file.
struct FetchPermit<'a> {
    client: &'a Debuginfod,
    id: &'a BuildId,
}

impl Drop for FetchPermit<'_> {
    fn drop(&mut self) {
        self.client.in_progress().remove(self.id);
        self.client.fetch_done.notify_all();
    }
}

#[cfg(test)]
mod tests;
