//! If the memory of `threading` is corrupted, only names are missing.

use stackweave_cpython::layout::{InstanceLayout, KeysLayout};

use super::fake_process::{BASE, FakeProcess, THREADS};
use super::fake_threading::name;
use super::hostile_tests::{frames_of, minors, threads};
use super::runtime::Runtime;

/// Returns the names of the threads, and checks that all frames are there.
fn names(process: &FakeProcess, runtime: &Runtime) -> Vec<Option<String>> {
    let found = threads(process, runtime);
    assert_eq!(found.len(), THREADS as usize);
    for thread in &found {
        assert_eq!((thread.frames.len(), &thread.problem), (frames_of(runtime.layout.minor), &None));
    }
    found.into_iter().map(|thread| thread.name.map(|name| name.to_string())).collect()
}

fn no_names() -> Vec<Option<String>> {
    vec![None; THREADS as usize]
}

/// Addresses without an object, or with an unreadable one.
const NOWHERE: [u64; 7] = [0, 1, 7, 8, 4096, BASE + (1 << 40), u64::MAX];

#[test]
fn invalid_pointers_give_no_name() {
    for minor in minors() {
        let (process, runtime) = FakeProcess::new(minor);
        let threading = &process.threading;
        let [modules, globals, active] = threading.dictionaries[..] else { unreachable!() };
        let itself = [modules, globals, active, threading.module, threading.class];
        let mut places = vec![(process.interpreter, runtime.lists.modules), (threading.module, 16)];
        places.extend([modules, globals, active].map(|dictionary| (dictionary, 8)));
        places.extend([modules, globals, active].map(|dictionary| (dictionary, 32)));
        for (address, offset) in places {
            for word in NOWHERE.into_iter().chain(itself) {
                let mut changed = process.clone();
                changed.put(address, offset, word);
                let expected =
                    if changed.bytes == process.bytes { vec![Some(name(1)), Some(name(2))] } else { no_names() };
                assert_eq!(names(&changed, &runtime), expected, "3.{minor} {word:#x} at {offset}");
            }
        }
    }
}

#[test]
fn tables_of_any_size_can_be_read() {
    for minor in minors() {
        let (process, runtime) = FakeProcess::new(minor);
        let (KeysLayout::OneKind { count, .. } | KeysLayout::Kinds { count, .. }) = runtime.layout.attributes.keys;
        for keys in process.threading.keys.clone() {
            for size in [0, 1 << 16, (1 << 16) + 1, 1 << 40, u64::MAX] {
                let mut changed = process.clone();
                changed.put(keys, count, size);
                names(&changed, &runtime);
                if let KeysLayout::OneKind { size: index_size, .. } = runtime.layout.attributes.keys {
                    changed.put(keys, index_size, size);
                    names(&changed, &runtime);
                }
            }
            for byte in [0, 16, 20, 21, 63, 64, 255] {
                let mut changed = process.clone();
                if let KeysLayout::Kinds { log2_index_bytes, kind, .. } = runtime.layout.attributes.keys {
                    changed.put_bytes(keys, log2_index_bytes, &[byte]);
                    names(&changed, &runtime);
                    changed.put_bytes(keys, kind, &[byte]);
                    names(&changed, &runtime);
                }
            }
        }
        let mut changed = process.clone();
        process.threading.keys.iter().for_each(|keys| changed.put(*keys, count, u64::MAX));
        assert_eq!(names(&changed, &runtime), no_names(), "3.{minor}");
    }
}

#[test]
fn a_name_that_is_not_text_is_omitted() {
    for minor in minors() {
        let (process, runtime) = FakeProcess::new(minor);
        let (first, text) = (process.threading.names[0], runtime.layout.text);
        for (offset, word) in [(8, process.threading.class), (8, 0), (text.length, 0), (text.length, u64::MAX)] {
            let mut changed = process.clone();
            changed.put(first, offset, word);
            assert_eq!(names(&changed, &runtime), [None, Some(name(2))], "3.{minor} {word:#x} at {offset}");
        }
    }
}

#[test]
fn a_thread_with_invalid_pointers_has_no_name() {
    for minor in minors() {
        let (process, runtime) = FakeProcess::new(minor);
        let first = process.threading.threads[0];
        for word in NOWHERE {
            let mut changed = process.clone();
            changed.put(first, 8, word);
            assert_eq!(names(&changed, &runtime), [None, Some(name(2))], "3.{minor} {word:#x}");
            let mut changed = process.clone();
            let values = match runtime.layout.attributes.instance {
                InstanceLayout::AsOthers => first + 16,
                InstanceLayout::ValuesOrDictionary { values_before, .. } => first - values_before as u64,
                InstanceLayout::Tagged { word_before, .. } => first - word_before as u64,
                InstanceLayout::Inline { .. } => first + 64,
            };
            // Values behind the object have a byte that says whether they are valid.
            changed.put(values, 0, word & !0xff00_0000);
            assert_eq!(names(&changed, &runtime), [None, Some(name(2))], "3.{minor} {word:#x}");
        }
    }
}

/// Simulates the state after `vars(thread)`, and on later versions with its values still behind the object.
#[test]
fn a_thread_with_a_dictionary_has_its_name() {
    for minor in minors() {
        let (mut process, runtime) = FakeProcess::new(minor);
        let first = process.threading.threads[0];
        let dictionary = process.make_attributes("other");
        let shared = process.make_shared_attributes(first);
        process.fill_page();
        for (dictionary, expected) in [(Some(dictionary), "other".to_owned()), (shared, name(1))] {
            let Some(dictionary) = dictionary else { continue };
            match runtime.layout.attributes.instance {
                InstanceLayout::AsOthers => process.put(first, 16, dictionary),
                InstanceLayout::ValuesOrDictionary { values_before, dictionary_before, .. } => {
                    process.put(first - values_before as u64, 0, 0);
                    process.put(first - dictionary_before as u64, 0, dictionary);
                }
                InstanceLayout::Tagged { word_before, .. } => process.put(first - word_before as u64, 0, dictionary),
                InstanceLayout::Inline { dictionary_before, .. } => {
                    process.put(first - dictionary_before as u64, 0, dictionary);
                }
            }
            assert_eq!(names(&process, &runtime), [Some(expected), Some(name(2))], "3.{minor}");
        }
    }
}

#[test]
fn without_threading_the_first_thread_is_the_main_thread() {
    for minor in minors() {
        let (mut process, runtime) = FakeProcess::new(minor);
        let modules = process.make_modules_without_threading();
        process.fill_page();
        process.put(process.interpreter, runtime.lists.modules, modules);
        assert_eq!(names(&process, &runtime), [None, Some("MainThread".to_owned())], "3.{minor}");
    }
}
