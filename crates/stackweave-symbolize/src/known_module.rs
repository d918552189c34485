//! A module that was used before, with its file and all results.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use stackweave_core::Module;

use crate::addr2line_child::{Addr2lineChild, ChildError, DEFAULT_DEADLINE, program::choose_program};
use crate::debug_files::SearchPaths;
use crate::module_file::ModuleFile;
use crate::module_lookup::guarded;
use crate::options::SymbolizeMode;
use crate::resolved::{Resolved, SymbolSource, Symbolized, UnresolvedReason};

/// A module that was used before.
#[derive(Debug)]
pub(crate) struct KnownModule {
    name: Arc<str>,
    file: Result<ModuleFile, UnresolvedReason>,
    /// The results, by stated address.
    resolved: Mutex<HashMap<u64, Arc<Resolved>>>,
    /// The child for [`SymbolizeMode::Addr2line`], once it has been needed.
    child: Mutex<Option<Result<Addr2lineChild, ChildError>>>,
}

/// Addresses of one module: stated, with the index of their results in the batch.
pub(crate) type WantedAddresses = Vec<(u64, usize)>;

/// Results, with their indices in the batch.
pub(crate) type ResolvedBatch = Vec<(usize, Arc<Resolved>)>;

impl KnownModule {
    /// Opens the module's file.
    pub(crate) fn open(module: &Module, search_paths: &SearchPaths) -> Self {
        let open = || ModuleFile::open(module, search_paths);
        let file = guarded(open).unwrap_or(Err(UnresolvedReason::BadFile));
        Self { name: module.name().into(), file, resolved: Mutex::default(), child: Mutex::default() }
    }

    /// Returns whether the file was opened and has not changed since.
    pub(crate) fn is_current(&self) -> bool {
        self.file.as_ref().is_ok_and(ModuleFile::is_current)
    }

    /// Returns whether the file was opened.
    pub(crate) fn is_open(&self) -> bool {
        self.file.is_ok()
    }

    /// Splits addresses into those with known results and the others, which are sorted: neighbours need the same
    /// data.
    pub(crate) fn split_known(&self, wanted: WantedAddresses) -> (ResolvedBatch, WantedAddresses) {
        let kept = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut found, mut new) = (Vec::new(), Vec::new());
        for (stated, place) in wanted {
            match kept.get(&stated) {
                Some(resolved) => found.push((place, Arc::clone(resolved))),
                None => new.push((stated, place)),
            }
        }
        new.sort_unstable();
        (found, new)
    }

    /// Looks up unknown addresses, and stores the results. The second value is the child's error if it failed:
    /// then its addresses were looked up in process.
    pub(crate) fn look_up(
        &self,
        wanted: &WantedAddresses,
        search_paths: &SearchPaths,
    ) -> (ResolvedBatch, Option<ChildError>) {
        let (by_child, failure) = match (&self.file, search_paths.options.mode) {
            (Ok(file), SymbolizeMode::Addr2line) => self.query_child(file, wanted, search_paths),
            _ => (Vec::new(), None),
        };
        let mut by_child = by_child.into_iter();
        let mut symbolized: Vec<Option<Symbolized>> = wanted.iter().map(|_| by_child.next().flatten()).collect();
        let left: Vec<u64> = wanted
            .iter()
            .zip(&symbolized)
            .filter(|(_, known)| known.is_none())
            .map(|((stated, _), _)| *stated)
            .collect();
        let mut resolved = match &self.file {
            Ok(file) => file.resolve(&left, search_paths),
            Err(reason) => vec![Symbolized::Unknown(*reason); left.len()],
        }
        .into_iter();
        symbolized.iter_mut().filter(|known| known.is_none()).for_each(|known| *known = resolved.next());
        let result = |((stated, place), symbolized): (&(u64, usize), Option<Symbolized>)| {
            let resolved = Resolved { module: Some(Arc::clone(&self.name)), offset: *stated, symbolized: symbolized? };
            Some((*place, Arc::new(resolved)))
        };
        let answers: ResolvedBatch = wanted.iter().zip(symbolized).filter_map(result).collect();
        debug_assert_eq!(answers.len(), wanted.len());
        let kept = answers.iter().map(|(_, resolved)| (resolved.offset, Arc::clone(resolved)));
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner).extend(kept);
        (answers, failure)
    }

    /// Returns the child's results, `None` for addresses that it does not know; an empty list if it fails.
    fn query_child(
        &self,
        file: &ModuleFile,
        wanted: &WantedAddresses,
        search_paths: &SearchPaths,
    ) -> (Vec<Option<Symbolized>>, Option<ChildError>) {
        let Some(path) = file.path() else { return (Vec::new(), None) };
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let child = child.get_or_insert_with(|| {
            let program = choose_program(search_paths.options.addr2line.as_deref());
            Addr2lineChild::start(&program, path, DEFAULT_DEADLINE)
        });
        let stated: Vec<u64> = wanted.iter().map(|(stated, _)| *stated).collect();
        let chains = child.as_mut().map_err(|error| error.clone()).and_then(|child| child.resolve(&stated));
        let symbolized = |frames: Vec<_>| {
            (!frames.is_empty()).then(|| Symbolized::Frames { frames: frames.into(), source: SymbolSource::Addr2line })
        };
        match chains {
            Ok(chains) => (chains.into_iter().map(symbolized).collect(), None),
            Err(error) => (Vec::new(), Some(error)),
        }
    }
}
