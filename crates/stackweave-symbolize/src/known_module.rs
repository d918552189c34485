//! A module that was asked for before: its file, and everything found in it.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use stackweave_core::Module;

use crate::addr2line_child::{Addr2lineChild, ChildError, DEFAULT_DEADLINE, program::choose_program};
use crate::debug_file::Places;
use crate::module_file::ModuleFile;
use crate::options::Mode;
use crate::resolved::{Reason, Resolved, Source, Symbolized};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct KnownModule {
    name: Arc<str>,
    file: Result<ModuleFile, Reason>,
    /// What was found, by stated address.
    resolved: Mutex<HashMap<u64, Arc<Resolved>>>,
    /// The child that is asked in [`Mode::Addr2line`], once it was needed.
    child: Mutex<Option<Result<Addr2lineChild, ChildError>>>,
}

/// Some addresses of one module: stated, and where in the batch their answers go.
pub(crate) type Wanted = Vec<(u64, usize)>;

/// Answers, and where in the batch they go.
pub(crate) type Answers = Vec<(usize, Arc<Resolved>)>;

impl KnownModule {
    /// Opens the module's file.
    pub(crate) fn open(module: &Module, places: &Places) -> Self {
        let open = || ModuleFile::open(module, places);
        let file = guarded(open).unwrap_or(Err(Reason::BadFile));
        Self { name: module.name().into(), file, resolved: Mutex::default(), child: Mutex::default() }
    }

    /// Whether there is a file, and what was read of it is still true.
    pub(crate) fn is_current(&self) -> bool {
        self.file.as_ref().is_ok_and(ModuleFile::is_current)
    }

    /// Whether there is a file.
    pub(crate) fn is_open(&self) -> bool {
        self.file.is_ok()
    }

    /// What is known already, and what is not, by address: neighbours share what has to be read for them.
    pub(crate) fn split(&self, wanted: Wanted) -> (Answers, Wanted) {
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

    /// Looks up what is not known, and keeps it. The second value says why the child failed, if it did: its
    /// addresses were then looked up here.
    pub(crate) fn look_up(&self, wanted: &Wanted, places: &Places) -> (Answers, Option<ChildError>) {
        let (by_child, failure) = match (&self.file, places.options.mode) {
            (Ok(file), Mode::Addr2line) => self.ask_child(file, wanted, places),
            _ => (Vec::new(), None),
        };
        let mut by_child = by_child.into_iter();
        let mut answers = Vec::with_capacity(wanted.len());
        let mut kept = Vec::with_capacity(wanted.len());
        for (stated, place) in wanted {
            let symbolized = by_child.next().flatten().unwrap_or_else(|| self.resolve(*stated, places));
            let resolved = Arc::new(Resolved { module: Some(Arc::clone(&self.name)), offset: *stated, symbolized });
            kept.push((*stated, Arc::clone(&resolved)));
            answers.push((*place, resolved));
        }
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner).extend(kept);
        (answers, failure)
    }

    fn resolve(&self, stated: u64, places: &Places) -> Symbolized {
        let file = match &self.file {
            Ok(file) => file,
            Err(reason) => return Symbolized::Unknown(*reason),
        };
        let resolve = || match places.options.mode {
            Mode::Fast | Mode::Addr2line => file.resolve(stated, places),
            Mode::Dladdr => file.resolve_exported(stated, places),
        };
        guarded(resolve).unwrap_or(Symbolized::Unknown(Reason::BadFile))
    }

    /// The child's answers, `None` where it knows nothing; none at all if it fails.
    fn ask_child(
        &self,
        file: &ModuleFile,
        wanted: &Wanted,
        places: &Places,
    ) -> (Vec<Option<Symbolized>>, Option<ChildError>) {
        let Some(path) = file.path() else { return (Vec::new(), None) };
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let child = child.get_or_insert_with(|| {
            let program = choose_program(places.options.addr2line.as_deref());
            Addr2lineChild::start(&program, path, DEFAULT_DEADLINE)
        });
        let stated: Vec<u64> = wanted.iter().map(|(stated, _)| *stated).collect();
        let chains = child.as_mut().map_err(|error| error.clone()).and_then(|child| child.resolve(&stated));
        let symbolized = |frames: Vec<_>| {
            (!frames.is_empty()).then(|| Symbolized::Frames { frames: frames.into(), source: Source::Addr2line })
        };
        match chains {
            Ok(chains) => (chains.into_iter().map(symbolized).collect(), None),
            Err(error) => (Vec::new(), Some(error)),
        }
    }
}

/// The parsers are meant never to panic, whatever a file holds; if one does, it costs one answer.
fn guarded<R>(work: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
