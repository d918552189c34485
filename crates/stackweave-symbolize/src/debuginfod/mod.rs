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

/// How long a file may take if `DEBUGINFOD_TIMEOUT` does not say.
const DEFAULT_LIMIT: Duration = Duration::from_secs(10);
/// How large a file may be if `DEBUGINFOD_MAXSIZE` does not say.
const DEFAULT_MAX_SIZE: u64 = 2 << 30;

/// A client of some servers, with a cache that it shares with elfutils' clients.
#[derive(Debug)]
pub(crate) struct Debuginfod {
    servers: Vec<String>,
    /// For one file, all servers together.
    limit: Duration,
    max_size: u64,
    cache: Cache,
    client: Client,
    /// The files that some thread is about to fetch.
    under_way: Mutex<HashSet<BuildId>>,
    someone_is_done: Condvar,
}

impl Debuginfod {
    /// A client as the environment describes it, in the variables that elfutils reads; none if that names no server
    /// or no folder to keep files in.
    ///
    /// `DEBUGINFOD_TIMEOUT` is the time for all of a file, where for elfutils it is the time for its beginning.
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

    /// A client of `servers`, whose URLs have spaces between them. Words that are no URLs are settings of elfutils.
    fn new(servers: &str, folder: PathBuf, limit: Duration, max_size: u64) -> Option<Self> {
        let is_url = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
        let servers: Vec<String> = servers.split_whitespace().filter(is_url).map(str::to_owned).collect();
        (!servers.is_empty()).then(|| Self {
            servers,
            limit,
            max_size,
            cache: Cache::new(folder),
            client: Client::default(),
            under_way: Mutex::default(),
            someone_is_done: Condvar::new(),
        })
    }

    /// The debug file of the module with this build id: from the cache, else from the first server that has it.
    pub(crate) fn fetch_debug_info(&self, id: &BuildId) -> Result<PathBuf, DebuginfodError> {
        let deadline = Instant::now() + self.limit;
        if let Some(answer) = self.ask_cache(id) {
            return answer;
        }
        let _turn = self.take_turn(id, deadline).ok_or(DebuginfodError::Late(self.limit))?;
        self.ask_cache(id).unwrap_or_else(|| self.ask_servers(id, deadline))
    }

    fn ask_cache(&self, id: &BuildId) -> Option<Result<PathBuf, DebuginfodError>> {
        match self.cache.find(id) {
            Cached::Here(path) => Some(Ok(path)),
            Cached::Missing => Some(Err(DebuginfodError::NotFound)),
            Cached::Unknown => None,
        }
    }

    /// Asks each server in turn, each for its share of the time that is left: one that hangs must not take it all.
    fn ask_servers(&self, id: &BuildId, deadline: Instant) -> Result<PathBuf, DebuginfodError> {
        let mut fault = DebuginfodError::NotFound;
        for (servers_left, server) in (1..=self.servers.len()).rev().zip(&self.servers) {
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(servers_left).unwrap_or(u32::MAX);
            if share.is_zero() {
                return Err(DebuginfodError::Late(self.limit));
            }
            match self.ask_server(server, id, share) {
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

    fn ask_server(&self, server: &str, id: &BuildId, limit: Duration) -> Result<PathBuf, DebuginfodError> {
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
    fn take_turn<'a>(&'a self, id: &'a BuildId, deadline: Instant) -> Option<Turn<'a>> {
        let mut under_way = self.under_way();
        while under_way.contains(id) {
            let left = deadline.checked_duration_since(Instant::now())?;
            let waited = self.someone_is_done.wait_timeout(under_way, left);
            under_way = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        under_way.insert(id.clone());
        Some(Turn { client: self, id })
    }

    fn under_way(&self) -> MutexGuard<'_, HashSet<BuildId>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to fetch a file.
struct Turn<'a> {
    client: &'a Debuginfod,
    id: &'a BuildId,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.client.under_way().remove(self.id);
        self.client.someone_is_done.notify_all();
    }
}

#[cfg(test)]
mod tests;
