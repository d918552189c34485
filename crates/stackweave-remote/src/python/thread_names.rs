//! The names of threads in `threading`.
//!
//! They are read from `threading._active`, which contains the `Thread` of each thread, and not from the local
//! variables of the frames that begin a thread: the main thread has no such frames, nor does a thread that
//! `threading` has not started but that uses it, and locals may be moved or cleared.

use std::collections::HashMap;
use std::sync::Arc;

use super::objects::Objects;

/// The offset of a module's dictionary, in all versions.
const MODULE_DICTIONARY: usize = 16;
/// The name of the main thread when `threading` is imported.
const MAIN: &str = "MainThread";

/// The names of the threads of all interpreters.
pub(super) struct ThreadNames<'a> {
    objects: &'a Objects<'a>,
    /// The offset of `sys.modules` in an interpreter.
    modules: usize,
    /// The threads of each interpreter.
    active: HashMap<u64, ActiveThreads>,
}

/// The active threads of an interpreter.
enum ActiveThreads {
    /// Its `Thread` objects, by their `pthread_self()`.
    Threads(HashMap<u64, u64>),
    /// It has not imported `threading`.
    NotImported,
    Unknown,
}

impl<'a> ThreadNames<'a> {
    pub(super) fn new(objects: &'a Objects<'a>, modules: usize) -> Self {
        Self { objects, modules, active: HashMap::new() }
    }

    /// Returns the name of a thread, by its `pthread_self()`.
    pub(super) fn of(&mut self, interpreter: u64, pthread: u64) -> Option<Arc<str>> {
        let ActiveThreads::Threads(active) = self.active(interpreter) else { return None };
        let thread = *active.get(&pthread)?;
        let name = self.objects.attribute(thread, "_name").filter(|name| self.objects.is_a(*name, b"str\0"))?;
        self.objects.text(name).filter(|name| !name.is_empty())
    }

    /// Returns the name that the main thread would have, in an interpreter that has not imported `threading`.
    pub(super) fn of_main(&mut self, interpreter: u64) -> Option<Arc<str>> {
        matches!(self.active(interpreter), ActiveThreads::NotImported).then(|| MAIN.into())
    }

    fn active(&mut self, interpreter: u64) -> &ActiveThreads {
        let (objects, modules) = (self.objects, self.modules);
        self.active.entry(interpreter).or_insert_with(|| find_active(objects, interpreter, modules))
    }
}

fn find_active(objects: &Objects<'_>, interpreter: u64, modules: usize) -> ActiveThreads {
    let Some(modules) = objects.snapshot.word(interpreter, modules) else { return ActiveThreads::Unknown };
    let Some(threading) = objects.item(modules, "threading") else {
        // Every dictionary that could be read has this.
        return if objects.item(modules, "sys").is_some() {
            ActiveThreads::NotImported
        } else {
            ActiveThreads::Unknown
        };
    };
    let dictionary = objects.snapshot.word(threading, MODULE_DICTIONARY);
    let active = dictionary.and_then(|dictionary| objects.item(dictionary, "_active"));
    active.and_then(|active| objects.items_of_numbers(active)).map_or(ActiveThreads::Unknown, ActiveThreads::Threads)
}
