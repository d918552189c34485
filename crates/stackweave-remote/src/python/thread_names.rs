//! The names that `threading` gives.
//!
//! They are read from `threading._active`, which has the `Thread` of each thread, and not from the local variables of the
//! frames that begin a thread: the main thread has no such frames, nor has one that was not begun by `threading` but used
//! it since, and locals may be moved or cleared.

use std::collections::HashMap;
use std::sync::Arc;

use super::objects::Objects;

/// In a module, in all versions: its dictionary.
const MODULE_DICTIONARY: usize = 16;
/// What `threading` calls the main thread, when it is imported.
const MAIN: &str = "MainThread";

/// The names of the threads of all interpreters.
pub(super) struct ThreadNames<'a> {
    objects: &'a Objects<'a>,
    /// In an interpreter: `sys.modules`.
    modules: usize,
    /// By interpreter.
    active: HashMap<u64, Active>,
}

/// What is known of an interpreter.
enum Active {
    /// Its `Thread` objects, by what `pthread_self()` is in them.
    Threads(HashMap<u64, u64>),
    /// It has not imported `threading`.
    NotImported,
    Unknown,
}

impl<'a> ThreadNames<'a> {
    pub(super) fn new(objects: &'a Objects<'a>, modules: usize) -> Self {
        Self { objects, modules, active: HashMap::new() }
    }

    /// The name of a thread, by what `pthread_self()` is there.
    pub(super) fn of(&mut self, interpreter: u64, pthread: u64) -> Option<Arc<str>> {
        let Active::Threads(active) = self.active(interpreter) else { return None };
        let thread = *active.get(&pthread)?;
        let name = self.objects.attribute(thread, "_name").filter(|name| self.objects.is_a(*name, b"str\0"))?;
        self.objects.text(name).filter(|name| !name.is_empty())
    }

    /// The name that the main thread would have, in an interpreter that has not imported `threading`.
    pub(super) fn of_main(&mut self, interpreter: u64) -> Option<Arc<str>> {
        matches!(self.active(interpreter), Active::NotImported).then(|| MAIN.into())
    }

    fn active(&mut self, interpreter: u64) -> &Active {
        let (objects, modules) = (self.objects, self.modules);
        self.active.entry(interpreter).or_insert_with(|| find_active(objects, interpreter, modules))
    }
}

fn find_active(objects: &Objects<'_>, interpreter: u64, modules: usize) -> Active {
    let Some(modules) = objects.snapshot.word(interpreter, modules) else { return Active::Unknown };
    let Some(threading) = objects.item(modules, "threading") else {
        // A dictionary that could be read has this.
        return if objects.item(modules, "sys").is_some() { Active::NotImported } else { Active::Unknown };
    };
    let dictionary = objects.snapshot.word(threading, MODULE_DICTIONARY);
    let active = dictionary.and_then(|dictionary| objects.item(dictionary, "_active"));
    active.and_then(|active| objects.items_of_numbers(active)).map_or(Active::Unknown, Active::Threads)
}
