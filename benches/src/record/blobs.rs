//! Interning the parts of code objects that are stored: the cost for a new code object, and for one whose equal is
//! known.

use std::hint::black_box;
use std::io;
use std::sync::{Mutex, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use stackweave_core::BlobId;
use stackweave_store::BlobTable;

use super::code_objects::{CodeObjects, Parts};
use super::rounds::{Entrant, case, samples, share};
use crate::meter::thread_cpu_ns;
use crate::options::Effort;
use crate::report::Case;

pub(super) const KNOWN: &str = "record/blob-known";
pub(super) const NEW: &str = "record/blob-new";

const OBJECTS: usize = 500;
const PASSES: usize = 5;

pub(super) fn measure_known(effort: Effort, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
    let objects = CodeObjects::new().take(OBJECTS);
    let entrants = entrants();
    for (_, entrant) in &entrants {
        entrant.intern_all(&objects);
    }
    let samples = samples(&entrants, effort.pick(21, 101), |_, (_, entrant)| {
        let start = thread_cpu_ns();
        for _ in 0..PASSES {
            entrant.intern_all(&objects);
        }
        Ok(share(thread_cpu_ns() - start, PASSES * OBJECTS))
    })?;
    done(case(KNOWN, format!("{OBJECTS} code objects"), None, &entrants, &samples))
}

pub(super) fn measure_new(effort: Effort, done: &mut dyn FnMut(Case) -> io::Result<()>) -> io::Result<()> {
    let rounds = effort.pick(11, 41);
    let mut objects = CodeObjects::new();
    let objects: Vec<_> = (0..rounds).map(|_| objects.take(OBJECTS)).collect();
    let entrants = entrants();
    let samples = samples(&entrants, rounds, |round, (_, entrant)| {
        let start = thread_cpu_ns();
        entrant.intern_all(&objects[round]);
        Ok(share(thread_cpu_ns() - start, OBJECTS))
    })?;
    done(case(NEW, format!("{OBJECTS} code objects at a time"), None, &entrants, &samples))
}

/// Turns byte strings into integers.
trait Interner {
    fn intern(&self, parts: &[&[u8]; 4]) -> u32;

    /// Interns all objects. The loop is in the trait so that it is compiled for each interner, without indirect calls.
    fn intern_all(&self, objects: &[Parts]) {
        for object in objects {
            black_box(self.intern(black_box(&object.each_ref().map(|part| &**part))));
        }
    }
}

/// Returns one empty interner of each kind; ours first.
fn entrants() -> Vec<Entrant<dyn Interner>> {
    vec![
        ("ours", Box::new(BlobTable::new())),
        ("map, read lock", Box::new(RwLock::new(Map::default()))),
        ("map, lock", Box::new(Mutex::new(Map::default()))),
        ("copy", Box::new(Copy)),
    ]
}

type Map = FxHashMap<Box<[u8]>, u32>;

/// Copies the parts into a buffer, one after the other.
fn joined<'a>(parts: &[&[u8]; 4], buffer: &'a mut [u8; 1024]) -> &'a [u8] {
    let mut end = 0;
    for part in parts {
        buffer[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    &buffer[..end]
}

fn insert(map: &mut Map, bytes: &[u8]) -> u32 {
    let next = u32::try_from(map.len() + 1).unwrap_or(u32::MAX);
    *map.entry(bytes.into()).or_insert(next)
}

impl Interner for BlobTable {
    fn intern(&self, parts: &[&[u8]; 4]) -> u32 {
        self.intern(parts).map_or(0, BlobId::get)
    }
}

impl Interner for RwLock<Map> {
    fn intern(&self, parts: &[&[u8]; 4]) -> u32 {
        let mut buffer = [0; 1024];
        let bytes = joined(parts, &mut buffer);
        let known = self.read().unwrap_or_else(PoisonError::into_inner).get(bytes).copied();
        known.unwrap_or_else(|| insert(&mut self.write().unwrap_or_else(PoisonError::into_inner), bytes))
    }
}

impl Interner for Mutex<Map> {
    fn intern(&self, parts: &[&[u8]; 4]) -> u32 {
        let mut buffer = [0; 1024];
        let bytes = joined(parts, &mut buffer);
        let mut map = self.lock().unwrap_or_else(PoisonError::into_inner);
        let known = map.get(bytes).copied();
        known.unwrap_or_else(|| insert(&mut map, bytes))
    }
}

/// The least work that reads all bytes: a lower limit, not a peer.
struct Copy;

impl Interner for Copy {
    fn intern(&self, parts: &[&[u8]; 4]) -> u32 {
        let mut buffer = [0; 1024];
        black_box(joined(parts, &mut buffer));
        0
    }
}
