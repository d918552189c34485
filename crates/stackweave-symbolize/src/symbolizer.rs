//! The resolver: addresses in, frames out.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stackweave_core::{BuildId, CodeAddress, Module, ModuleList};

use crate::debug_file::Places;
use crate::known_module::{Answers, KnownModule, Wanted};
use crate::options::Options;
use crate::outside::{Outside, PerfMapHealth};
use crate::resolved::{Reason, Resolved, Symbolized};
use crate::without_threads::WithoutThreads;

/// Resolves addresses, and keeps what it read of each module.
///
/// May be shared between threads. Needs no lock of anybody else's.
#[derive(Debug)]
pub struct Symbolizer {
    places: Places,
    modules: Mutex<HashMap<ModuleKey, Arc<KnownModule>>>,
    outside: Outside,
    counters: Counters,
    child_error: Mutex<Option<String>>,
}

/// Which file a module is: another build at the same path is another one.
type ModuleKey = (PathBuf, Option<BuildId>);

/// What a symbolizer has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Addresses asked for.
    pub addresses: u64,
    /// Distinct addresses that were looked up, rather than known from before.
    pub looked_up: u64,
    /// Modules opened.
    pub modules: u64,
    /// Modules opened anew because their file was written to.
    pub replaced: u64,
    /// Batches for which an addr2line child failed: they were resolved in process.
    pub child_failures: u64,
    /// Addresses of which nothing could be told, by reason, indexed by `Reason as usize`.
    pub unknown: [u64; Reason::ALL.len()],
    /// How well perf maps and jitdumps could be read.
    pub perf_maps: PerfMapHealth,
}

#[derive(Debug, Default)]
struct Counters {
    addresses: AtomicU64,
    looked_up: AtomicU64,
    modules: AtomicU64,
    replaced: AtomicU64,
    child_failures: AtomicU64,
    unknown: [AtomicU64; Reason::ALL.len()],
}

/// Fewer new addresses than this are not worth a thread.
const WORTH_A_THREAD: usize = 8;

impl Symbolizer {
    /// A symbolizer with these options.
    pub fn new(options: Options) -> Self {
        let outside = Outside::new(options.perf_map_of);
        Self {
            places: Places::new(options),
            modules: Mutex::default(),
            outside,
            counters: Counters::default(),
            child_error: Mutex::default(),
        }
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
        let Counters { addresses, looked_up, modules, replaced, child_failures, unknown } = &self.counters;
        let mut stats = Stats {
            addresses: read(addresses),
            looked_up: read(looked_up),
            modules: read(modules),
            replaced: read(replaced),
            child_failures: read(child_failures),
            perf_maps: self.outside.health(),
            ..Stats::default()
        };
        for (total, counter) in stats.unknown.iter_mut().zip(unknown) {
            *total = read(counter);
        }
        stats
    }

    /// Why an addr2line child last failed, as a sentence.
    pub fn child_error(&self) -> Option<String> {
        self.child_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Resolves each group, several with new addresses in threads of their own.
    fn resolve_groups(&self, groups: HashMap<Option<usize>, Wanted>, modules: &ModuleList) -> Answers {
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
        if waiting.len() < 2 || total < WORTH_A_THREAD || WithoutThreads::is_asked_for() {
            done.extend(waiting.into_iter().flat_map(|(known, new)| self.look_up(&known, &new)));
            return done;
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                waiting.iter().map(|(known, new)| scope.spawn(move || self.look_up(known, new))).collect();
            // A thread that could not finish leaves its addresses to this one.
            for (thread, (known, new)) in threads.into_iter().zip(&waiting) {
                done.extend(thread.join().unwrap_or_else(|_| self.look_up(known, new)));
            }
        });
        done
    }

    fn resolve_outside(&self, address: u64) -> Arc<Resolved> {
        let resolved = Resolved { module: None, offset: address, symbolized: self.outside.resolve(address) };
        self.count(&resolved);
        Arc::new(resolved)
    }

    fn look_up(&self, known: &KnownModule, wanted: &Wanted) -> Answers {
        let (answers, failure) = known.look_up(wanted, &self.places);
        if let Some(error) = failure {
            self.counters.child_failures.fetch_add(1, Ordering::Relaxed);
            *self.child_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
        for (_, resolved) in &answers {
            self.count(resolved);
        }
        answers
    }

    /// What is known of `module`, after opening its file if that is new or was written to.
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
        let known = Arc::new(KnownModule::open(module, &self.places));
        // A file that can't be read now may be there the next time.
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
