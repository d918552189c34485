//! The resolver: addresses in, frames out.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stackweave_core::{BuildId, CodeAddress, Module, ModuleList};

use crate::module_file::ModuleFile;
use crate::options::{Mode, Options};
use crate::resolved::{Reason, Resolved, Symbolized};

/// Resolves addresses, and keeps what it read of each module.
///
/// May be shared between threads. Needs no lock of anybody else's.
#[derive(Debug)]
pub struct Symbolizer {
    options: Options,
    modules: Mutex<HashMap<ModuleKey, Arc<Known>>>,
    counters: Counters,
}

/// Which file a module is: another build at the same path is another one.
type ModuleKey = (PathBuf, Option<BuildId>);

/// A module that was asked for before.
#[derive(Debug)]
struct Known {
    file: Result<ModuleFile, Reason>,
    name: Arc<str>,
    /// What was found, by stated address.
    resolved: Mutex<HashMap<u64, Arc<Resolved>>>,
}

/// What a symbolizer has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Addresses asked for.
    pub addresses: u64,
    /// Distinct addresses that had not been asked for before.
    pub looked_up: u64,
    /// Modules opened.
    pub modules: u64,
    /// Modules opened anew because their file was replaced.
    pub replaced: u64,
    /// Addresses of which nothing could be told, by reason, indexed by `Reason as usize`.
    pub unknown: [u64; Reason::ALL.len()],
}

#[derive(Debug, Default)]
struct Counters {
    addresses: AtomicU64,
    looked_up: AtomicU64,
    modules: AtomicU64,
    replaced: AtomicU64,
    unknown: [AtomicU64; Reason::ALL.len()],
}

/// The addresses of one batch that lie in one module: stated, and where their answers go.
type Wanted = Vec<(u64, usize)>;

/// Fewer new addresses than this are not worth a thread.
const WORTH_A_THREAD: usize = 8;

impl Symbolizer {
    /// A symbolizer with these options.
    pub fn new(options: Options) -> Self {
        Self { options, modules: Mutex::default(), counters: Counters::default() }
    }

    /// Resolves `addresses`, which lie in `modules`: one answer each, in the same order. Equal addresses share
    /// their answer.
    pub fn resolve(&self, addresses: &[CodeAddress], modules: &ModuleList) -> Vec<Arc<Resolved>> {
        let mut unique: HashMap<u64, usize> = HashMap::with_capacity(addresses.len().min(4096));
        let mut groups: HashMap<Option<usize>, Wanted> = HashMap::new();
        let places: Vec<usize> = addresses
            .iter()
            .map(|address| {
                let next = unique.len();
                *unique.entry(address.to_bits()).or_insert_with(|| {
                    let pc = address.lookup();
                    let module = modules.find(pc);
                    let stated = module.map_or(pc, |(_, module)| module.stated(pc));
                    groups.entry(module.map(|(index, _)| index)).or_default().push((stated, next));
                    next
                })
            })
            .collect();
        let mut answers = vec![None; unique.len()];
        for (place, resolved) in self.resolve_groups(groups, modules) {
            answers[place] = Some(resolved);
        }
        self.counters.addresses.fetch_add(addresses.len() as u64, Ordering::Relaxed);
        let resolved: Vec<_> = places.into_iter().filter_map(|place| answers[place].clone()).collect();
        debug_assert_eq!(resolved.len(), addresses.len());
        resolved
    }

    /// Forgets modules that are not in `modules`: those that were unloaded.
    pub fn retain(&self, modules: &ModuleList) {
        let keep: Vec<ModuleKey> = modules.as_slice().iter().map(key).collect();
        self.lock().retain(|known, _| keep.contains(known));
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { addresses, looked_up, modules, replaced, unknown } = &self.counters;
        let mut stats = Stats {
            addresses: read(addresses),
            looked_up: read(looked_up),
            modules: read(modules),
            replaced: read(replaced),
            ..Stats::default()
        };
        for (total, counter) in stats.unknown.iter_mut().zip(unknown) {
            *total = read(counter);
        }
        stats
    }

    /// Resolves each group, the ones with many new addresses in threads of their own.
    fn resolve_groups(
        &self,
        groups: HashMap<Option<usize>, Wanted>,
        modules: &ModuleList,
    ) -> Vec<(usize, Arc<Resolved>)> {
        let mut done = Vec::new();
        let mut waiting = Vec::new();
        for (index, wanted) in groups {
            let Some(module) = index.map(|index| &modules.as_slice()[index]) else {
                done.extend(wanted.into_iter().map(|(address, place)| (place, self.resolve_outside(address))));
                continue;
            };
            let known = self.known(module);
            let (found, new) = known.split(wanted);
            done.extend(found);
            if !new.is_empty() {
                waiting.push((known, new));
            }
        }
        let total: usize = waiting.iter().map(|(_, new)| new.len()).sum();
        if waiting.len() < 2 || total < WORTH_A_THREAD {
            done.extend(waiting.into_iter().flat_map(|(known, new)| self.look_up(&known, new)));
            return done;
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                waiting.into_iter().map(|(known, new)| scope.spawn(move || self.look_up(&known, new))).collect();
            for thread in threads {
                done.extend(thread.join().unwrap_or_default());
            }
        });
        done
    }

    /// An address in no module.
    fn resolve_outside(&self, address: u64) -> Arc<Resolved> {
        self.count_unknown(Reason::NoModule);
        Arc::new(Resolved { module: None, offset: address, symbolized: Symbolized::Unknown(Reason::NoModule) })
    }

    /// Looks up what was not known before, and keeps it.
    fn look_up(&self, known: &Known, wanted: Wanted) -> Vec<(usize, Arc<Resolved>)> {
        self.counters.looked_up.fetch_add(wanted.len() as u64, Ordering::Relaxed);
        let mut answers = Vec::with_capacity(wanted.len());
        for (stated, place) in wanted {
            let symbolized = match &known.file {
                Ok(file) => self.resolve_in(file, stated),
                Err(reason) => Symbolized::Unknown(*reason),
            };
            if let Symbolized::Unknown(reason) = symbolized {
                self.count_unknown(reason);
            }
            let module = Some(Arc::clone(&known.name));
            let resolved = Arc::new(Resolved { module, offset: stated, symbolized });
            answers.push((place, stated, resolved));
        }
        let mut kept = known.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(answers.iter().map(|(_, stated, resolved)| (*stated, Arc::clone(resolved))));
        answers.into_iter().map(|(place, _, resolved)| (place, resolved)).collect()
    }

    fn resolve_in(&self, file: &ModuleFile, stated: u64) -> Symbolized {
        let resolve = || match self.options.mode {
            Mode::Fast | Mode::Addr2line => file.resolve(stated, &self.options),
            Mode::Dladdr => file.resolve_exported(stated, &self.options),
        };
        // The parsers below are meant never to panic, whatever the file; if one does, it costs one address.
        catch_unwind(AssertUnwindSafe(resolve)).unwrap_or(Symbolized::Unknown(Reason::BadFile))
    }

    /// What is known of `module`, after opening its file if that is new or was replaced.
    fn known(&self, module: &Module) -> Arc<Known> {
        let key = key(module);
        let known = self.lock().get(&key).cloned();
        if let Some(known) = known {
            if known.file.as_ref().is_ok_and(ModuleFile::is_current) {
                return known;
            }
            self.lock().remove(&key);
            self.counters.replaced.fetch_add(1, Ordering::Relaxed);
        }
        self.counters.modules.fetch_add(1, Ordering::Relaxed);
        let open = || ModuleFile::open(module, &self.options);
        let file = catch_unwind(AssertUnwindSafe(open)).unwrap_or(Err(Reason::BadFile));
        let known = Arc::new(Known { file, name: module.name().into(), resolved: Mutex::default() });
        // A file that can't be read now may be there the next time.
        if known.file.is_ok() {
            self.lock().insert(key, Arc::clone(&known));
        }
        known
    }

    fn count_unknown(&self, reason: Reason) {
        self.counters.unknown[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ModuleKey, Arc<Known>>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// What is known already, and what is not.
    fn split(&self, wanted: Wanted) -> (Vec<(usize, Arc<Resolved>)>, Wanted) {
        let kept = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut found, mut new) = (Vec::new(), Vec::new());
        for (stated, place) in wanted {
            match kept.get(&stated) {
                Some(resolved) => found.push((place, Arc::clone(resolved))),
                None => new.push((stated, place)),
            }
        }
        (found, new)
    }
}

fn key(module: &Module) -> ModuleKey {
    (module.path.clone(), module.build_id.clone())
}
