//! The symbolizer: resolves addresses to frames.

use std::collections::HashMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stackweave_core::{BuildId, CodeAddress, Module, ModuleList};

use crate::debug_files::SearchPaths;
use crate::jit_code::{JitCode, PerfMapHealth};
use crate::known_module::{KnownModule, ResolvedBatch, WantedAddresses};
use crate::options::SymbolizerOptions;
use crate::resolved::{Resolved, Symbolized, UnresolvedReason};
use crate::without_threads::WithoutThreads;

/// Resolves addresses, and keeps what it has read of each module.
///
/// May be shared between threads. It takes only its own locks.
#[derive(Debug)]
pub struct Symbolizer {
    search_paths: SearchPaths,
    modules: Mutex<HashMap<ModuleKey, Arc<KnownModule>>>,
    jit_code: JitCode,
    counters: SymbolizerCounters,
    child_error: Mutex<Option<String>>,
}

/// The identity of a module's file: a different build at the same path has a different key.
type ModuleKey = (PathBuf, Option<BuildId>);

/// Statistics of a symbolizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SymbolizerStats {
    /// Number of requested addresses.
    pub addresses: u64,
    /// Number of distinct addresses that were looked up, and not known from before.
    pub looked_up: u64,
    /// Number of opened modules.
    pub modules: u64,
    /// Number of modules that were opened again because their file was written to.
    pub replaced: u64,
    /// Number of batches for which an addr2line child failed, which were resolved in process.
    pub child_failures: u64,
    /// Number of unresolved addresses by reason, indexed by `UnresolvedReason as usize`.
    pub unknown: [u64; UnresolvedReason::ALL.len()],
    /// The results of reading perf maps and jitdumps.
    pub perf_maps: PerfMapHealth,
}

#[derive(Debug, Default)]
struct SymbolizerCounters {
    addresses: AtomicU64,
    looked_up: AtomicU64,
    modules: AtomicU64,
    replaced: AtomicU64,
    child_failures: AtomicU64,
    unknown: [AtomicU64; UnresolvedReason::ALL.len()],
}

/// The number of new addresses for which threads are started.
const WORTH_A_THREAD: usize = 8;

impl Symbolizer {
    /// Creates a symbolizer with these options.
    pub fn new(options: SymbolizerOptions) -> Self {
        let jit_code = JitCode::new(options.perf_map_of);
        Self {
            search_paths: SearchPaths::new(options),
            modules: Mutex::default(),
            jit_code,
            counters: SymbolizerCounters::default(),
            child_error: Mutex::default(),
        }
    }

    /// Resolves `addresses`, which are in `modules`: one result each, in the same order. Equal addresses share
    /// their result.
    pub fn resolve(&self, addresses: &[CodeAddress], modules: &ModuleList) -> Vec<Arc<Resolved>> {
        let mut unique: HashMap<u64, usize> = HashMap::with_capacity(addresses.len().min(4096));
        let mut groups: HashMap<Option<usize>, WantedAddresses> = HashMap::new();
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

    /// Drops modules that are not in `modules`: those that were unloaded.
    pub fn retain(&self, modules: &ModuleList) {
        let keep: Vec<ModuleKey> = modules.as_slice().iter().map(key).collect();
        self.lock().retain(|known, _| keep.contains(known));
    }

    /// Returns its statistics.
    pub fn stats(&self) -> SymbolizerStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let SymbolizerCounters { addresses, looked_up, modules, replaced, child_failures, unknown } = &self.counters;
        let mut stats = SymbolizerStats {
            addresses: read(addresses),
            looked_up: read(looked_up),
            modules: read(modules),
            replaced: read(replaced),
            child_failures: read(child_failures),
            perf_maps: self.jit_code.health(),
            ..SymbolizerStats::default()
        };
        for (total, counter) in stats.unknown.iter_mut().zip(unknown) {
            *total = read(counter);
        }
        stats
    }

    /// Returns why an addr2line child last failed, as a sentence.
    pub fn child_error(&self) -> Option<String> {
        self.child_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Resolves each group. If several have new addresses, as many threads as there are processors share them.
    fn resolve_groups(&self, groups: HashMap<Option<usize>, WantedAddresses>, modules: &ModuleList) -> ResolvedBatch {
        let mut done = Vec::new();
        let mut waiting = Vec::new();
        for (index, wanted) in groups {
            let Some(module) = index.map(|index| &modules.as_slice()[index]) else {
                done.extend(wanted.into_iter().map(|(address, place)| (place, self.resolve_outside(address))));
                continue;
            };
            let known = self.known(module);
            let (found, new) = known.split_known(wanted);
            done.extend(found);
            if !new.is_empty() {
                waiting.push((known, new));
            }
        }
        let total: usize = waiting.iter().map(|(_, new)| new.len()).sum();
        if waiting.len() < 2 || total < WORTH_A_THREAD || WithoutThreads::is_active() {
            done.extend(waiting.into_iter().flat_map(|(known, new)| self.look_up(&known, &new)));
            return done;
        }
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let next = AtomicUsize::new(0);
        let work = || {
            let modules = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            let modules = modules.map_while(|index| Some((index, waiting.get(index)?)));
            modules.map(|(index, (known, new))| (index, self.look_up(known, new))).collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (1..processors.min(waiting.len())).map(|_| scope.spawn(work)).collect();
            let mut of_all = work();
            of_all.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()));
            // The modules of a thread that could not finish are left to this one.
            let is_done = |index: usize| of_all.iter().any(|(done, _)| *done == index);
            let left: Vec<usize> = (0..waiting.len()).filter(|index| !is_done(*index)).collect();
            done.extend(of_all.into_iter().flat_map(|(_, batch)| batch));
            done.extend(left.into_iter().flat_map(|index| self.look_up(&waiting[index].0, &waiting[index].1)));
        });
        done
    }

    fn resolve_outside(&self, address: u64) -> Arc<Resolved> {
        let resolved = Resolved { module: None, offset: address, symbolized: self.jit_code.resolve(address) };
        self.count(&resolved);
        Arc::new(resolved)
    }

    fn look_up(&self, known: &KnownModule, wanted: &WantedAddresses) -> ResolvedBatch {
        let (answers, failure) = known.look_up(wanted, &self.search_paths);
        if let Some(error) = failure {
            self.counters.child_failures.fetch_add(1, Ordering::Relaxed);
            *self.child_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
        for (_, resolved) in &answers {
            self.count(resolved);
        }
        answers
    }

    /// Returns `module` with its results, after opening its file if that is new or was written to.
    fn known(&self, module: &Module) -> Arc<KnownModule> {
        let key = key(module);
        let known = self.lock().get(&key).cloned();
        if let Some(known) = known {
            if known.is_current() {
                return known;
            }
            self.lock().remove(&key);
            self.counters.replaced.fetch_add(1, Ordering::Relaxed);
        }
        self.counters.modules.fetch_add(1, Ordering::Relaxed);
        let known = Arc::new(KnownModule::open(module, &self.search_paths));
        // A file that cannot be read now may be readable next time.
        if known.is_open() {
            self.lock().insert(key, Arc::clone(&known));
        }
        known
    }

    fn count(&self, resolved: &Resolved) {
        self.counters.looked_up.fetch_add(1, Ordering::Relaxed);
        if let Symbolized::Unknown(reason) = resolved.symbolized {
            self.counters.unknown[reason as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ModuleKey, Arc<KnownModule>>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(module: &Module) -> ModuleKey {
    (module.path.clone(), module.build_id.clone())
}
