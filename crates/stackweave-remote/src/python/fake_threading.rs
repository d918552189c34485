//! The `threading` module of a [`FakeProcess`], with the objects that lead to the names of its threads.

use stackweave_cpython::layout::{InstanceLayout, KeysLayout};

use super::fake_process::{FakeProcess, THREADS};

/// Returns the name of a thread.
pub(super) fn name(task: u32) -> String {
    format!("worker {task}")
}

/// The addresses of its objects.
#[derive(Clone, Default)]
pub(super) struct FakeThreading {
    /// `sys.modules`, the module and its dictionary, `threading._active`.
    pub(super) dictionaries: Vec<u64>,
    pub(super) module: u64,
    /// The keys of all dictionaries, and of the class.
    pub(super) keys: Vec<u64>,
    pub(super) class: u64,
    /// `Thread` objects.
    pub(super) threads: Vec<u64>,
    /// Their names.
    pub(super) names: Vec<u64>,
}

/// Entries of a dictionary, with or without hashes.
enum Items<'a> {
    Texts(&'a [(&'a str, u64)]),
    Numbers(&'a [(u64, u64)]),
}

/// The number of words before an object.
const BEFORE: usize = 32;
/// Offsets in a type: its size and flags, and the offset of the dictionary in an instance of 3.10.
const SIZE: usize = 32;
const FLAGS: usize = 168;
const DICTIONARY: usize = 288;
const OBJECT: usize = 64;

impl FakeProcess {
    pub(super) fn make_threading(&mut self) {
        let class = self.make_type("Thread");
        self.put(class, SIZE, OBJECT as u64);
        self.put(class, FLAGS, 1 << 2 | 1 << 4);
        self.put(class, DICTIONARY, 16);
        self.threading.class = class;
        let threads: Vec<(u64, u64)> =
            (1..=THREADS).map(|task| (0x1000 * u64::from(task), self.make_thread(task))).collect();
        self.threading.threads = threads.iter().map(|(_, thread)| *thread).collect();
        let active = self.make_dictionary(&Items::Numbers(&threads));
        let globals = self.make_dictionary(&Items::Texts(&[("__name__", class), ("_active", active)]));
        let module = self.make_object("module", OBJECT);
        self.put(module, 16, globals);
        self.threading.module = module;
        let modules = self.make_dictionary(&Items::Texts(&[("sys", class), ("threading", module)]));
        self.put(self.interpreter, self.layout.lists.modules, modules);
        self.threading.dictionaries = vec![modules, globals, active];
    }

    fn make_thread(&mut self, task: u32) -> u64 {
        let (class, name) = (self.threading.class, self.make_text(&name(task)));
        self.threading.names.push(name);
        let thread = self.allocate(BEFORE + 2 * OBJECT) + BEFORE as u64;
        self.put(thread, 8, class);
        let (cached, values) = match self.layout.attributes.instance {
            InstanceLayout::AsOthers => {
                let dictionary = self.make_dictionary(&Items::Texts(&[("_target", class), ("_name", name)]));
                self.put(thread, 16, dictionary);
                return thread;
            }
            InstanceLayout::ValuesOrDictionary { values_before, cached_keys, .. } => {
                let values = self.allocate(OBJECT);
                self.put(thread - values_before as u64, 0, values);
                (cached_keys, values)
            }
            InstanceLayout::Tagged { word_before, cached_keys } => {
                let values = self.allocate(OBJECT);
                self.put(thread - word_before as u64, 0, values - 1);
                (cached_keys, values)
            }
            InstanceLayout::Inline { first_value, is_valid, cached_keys, .. } => {
                let values = thread + OBJECT as u64;
                self.put_bytes(values, is_valid, &[1]);
                (cached_keys, values + first_value as u64)
            }
        };
        self.put(values, 8, name);
        let keys = self.make_keys(&Items::Texts(&[("_target", 0), ("_name", 0)]));
        self.put(class, cached, keys);
        thread
    }

    /// Creates the dictionary of a thread with this name.
    pub(super) fn make_attributes(&mut self, name: &str) -> u64 {
        let name = self.make_text(name);
        self.make_dictionary(&Items::Texts(&[("_name", name)]))
    }

    /// Creates a dictionary whose values are those behind the thread, in versions that have these.
    pub(super) fn make_shared_attributes(&mut self, thread: u64) -> Option<u64> {
        let InstanceLayout::Inline { .. } = self.layout.attributes.instance else { return None };
        let dictionary = self.make_dictionary(&Items::Texts(&[("_target", 0), ("_name", 0)]));
        self.put(dictionary, 40, thread + OBJECT as u64);
        Some(dictionary)
    }

    /// Creates a `sys.modules` without `threading`.
    pub(super) fn make_modules_without_threading(&mut self) -> u64 {
        self.make_dictionary(&Items::Texts(&[("sys", self.threading.class), ("time", self.threading.class)]))
    }

    fn make_dictionary(&mut self, items: &Items<'_>) -> u64 {
        let dictionary = self.make_object("dict", OBJECT);
        let keys = self.make_keys(items);
        self.put(dictionary, 32, keys);
        dictionary
    }

    fn make_keys(&mut self, items: &Items<'_>) -> u64 {
        let keys = self.allocate(256);
        self.threading.keys.push(keys);
        let has_kinds = matches!(self.layout.attributes.keys, KeysLayout::Kinds { .. });
        let words: Vec<[u64; 3]> = match items {
            Items::Texts(items) => items.iter().map(|(key, value)| [7, self.make_text(key), *value]).collect(),
            Items::Numbers(items) => items.iter().map(|(key, value)| [*key, self.threading.class, *value]).collect(),
        };
        let skipped = usize::from(has_kinds && matches!(items, Items::Texts(_)));
        let entries = match self.layout.attributes.keys {
            KeysLayout::OneKind { size, count, index } => {
                self.put(keys, size, 8);
                self.put(keys, count, words.len() as u64);
                index + 8
            }
            KeysLayout::Kinds { log2_index_bytes, kind, count, index } => {
                self.put_bytes(keys, log2_index_bytes, &[3]);
                self.put_bytes(keys, kind, &[u8::try_from(skipped).unwrap()]);
                self.put(keys, count, words.len() as u64);
                index + 8
            }
        };
        for (at, word) in words.iter().flat_map(|entry| &entry[skipped..]).enumerate() {
            self.put(keys, entries + 8 * at, *word);
        }
        keys
    }
}
