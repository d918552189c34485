//! Modules that are loaded and unloaded: which names addresses get, and what is not kept.

use std::ffi::c_void;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stackweave_core::{CodeAddress, ModuleList, RawFrame, SourceLocation, StackId};
use stackweave_profile::{Frame, FrameNames, Resolver};
use stackweave_store::StackTable;
use stackweave_symbolize::SymbolizerOptions;
use stackweave_testkit::fixtures::{PLUGIN_INNER, PLUGIN_OUTER, PluginEnter, call_through, sw_recurse_wide};
use stackweave_testkit::library::Library;
use stackweave_testkit::symbols::Skipped;
use stackweave_testkit::symbols::library::{Language, Split};
use stackweave_testkit::symbols::module_file::LibraryFile;

use crate::common::{MadeUp, ThisProcess, capture, location, module, names, native, or_skip, python, resolver};

const BIAS: u64 = 0x7f00_0000_0000;

/// Returns the outermost function at this address above `BIAS`, and its module.
fn at_address(resolver: &Resolver, made_up: &MadeUp, stated: u64) -> (String, Option<String>) {
    let address = CodeAddress::instruction_pointer(BIAS + stated);
    let chain = resolver.resolve_addresses(&[address], made_up).remove(0);
    let frame = chain.last().expect("there is always one");
    (frame.name.to_string(), frame.module.as_deref().map(str::to_owned))
}

#[test]
fn an_unloaded_module_is_known_until_another_replaces_it() {
    let (c, cpp) = (or_skip!(Language::C.build(5, Split::No)), or_skip!(Language::Cpp.build(5, Split::No)));
    let first = LibraryFile::read(&c).function("sw_first").start;
    let (resolver, made_up) = (resolver(), MadeUp::with_modules(vec![module(&c, BIAS)]));
    let as_c = ("sw_first".to_owned(), Some("libexports.so".to_owned()));
    assert_eq!(at_address(&resolver, &made_up, first), as_c);
    made_up.load(Vec::new());
    assert_eq!(at_address(&resolver, &made_up, first), as_c, "it was captured before");
    assert_eq!(at_address(&resolver, &made_up, first + 1), as_c, "and one that was never resolved before");

    made_up.load(vec![module(&cpp, BIAS)]);
    let as_cpp = at_address(&resolver, &made_up, first);
    assert_eq!(as_cpp.1.as_deref(), Some("libshapes.so"));
    assert_ne!(as_cpp.0, "sw_first");
    made_up.load(Vec::new());
    assert_eq!(at_address(&resolver, &made_up, first), as_cpp, "the last one seen there");
    made_up.load(vec![module(&c, BIAS)]);
    assert_eq!(at_address(&resolver, &made_up, first), as_c);
}

#[test]
fn modules_that_were_only_seen_are_known_too() {
    let c = or_skip!(Language::C.build(5, Split::No));
    let first = LibraryFile::read(&c).function("sw_first").start;
    let (resolver, made_up) = (resolver(), MadeUp::with_modules(vec![module(&c, BIAS)]));
    resolver.see_modules(&made_up);
    made_up.load(Vec::new());
    assert_eq!(at_address(&resolver, &made_up, first).0, "sw_first");
}

/// Loads the plugin, captures in it, resolves, and unloads it. Returns the frames of the plugin, and the address of its
/// function. The plugin is called so deep that the loader does not overwrite the stack there.
fn resolve_inside(path: &str, stacks: &StackTable, resolver: &Resolver) -> (StackId, Vec<Arc<Frame>>, u64) {
    let library = Library::open(path).expect("the fixture was built");
    let symbol = library.symbol("sw_plugin_enter");
    let mut id = None;
    let mut check = || id = Some(capture(stacks));
    let mut enter = || {
        call_through(&mut check, |callback, data| {
            // SAFETY: the symbol is that function of the fixture, which gets a callback with its own data.
            unsafe { std::mem::transmute::<*mut c_void, PluginEnter>(symbol)(callback, data) };
        });
    };
    call_through(&mut enter, |callback, data| {
        // SAFETY: the fixture gets a callback with its own data; 20 frames of 4 KiB fit.
        unsafe { sw_recurse_wide(20, callback, data) };
    });
    let id = id.expect("the plugin calls back");
    (id, plugin_frames(&resolver.resolve(stacks, &[id], &ThisProcess)[0]), symbol as u64)
}

fn plugin_frames(stack: &[Arc<Frame>]) -> Vec<Arc<Frame>> {
    let is_plugin = |frame: &&Arc<Frame>| frame.module.as_deref().is_some_and(|module| module.contains("plugin"));
    stack.iter().filter(is_plugin).map(Arc::clone).collect()
}

#[test]
fn a_library_at_the_place_of_another_has_its_own_names() {
    const ROUNDS: usize = 60;
    let (stacks, resolver) = (StackTable::new(), resolver());
    let (mut same_place, mut last) = (0, 0);
    for round in 0..ROUNDS {
        let path = [PLUGIN_INNER, PLUGIN_OUTER][round % 2];
        let (id, inside, place) = resolve_inside(path, &stacks, &resolver);
        let after = plugin_frames(&resolver.resolve(&stacks, &[id], &ThisProcess)[0]);
        for frames in [&inside, &after] {
            assert_eq!(names(frames), ["plugin_inner", "sw_plugin_enter"], "round {round}");
            for frame in frames {
                assert!(path.ends_with(frame.module.as_deref().expect("it is in a plugin")), "{frame:?} for {path}");
            }
        }
        same_place += usize::from(place == last);
        last = place;
    }
    assert!(same_place > ROUNDS / 10, "the libraries were at one place in only {same_place} of {ROUNDS} rounds");
}

/// Returns two libraries for one place, and an address in both: in the first it is that of `sw_first`.
fn rivals() -> Result<(PathBuf, PathBuf, u64), Skipped> {
    let (c, cpp) = (Language::C.build(5, Split::No)?, Language::Cpp.build(5, Split::No)?);
    let first = LibraryFile::read(&c).function("sw_first").start;
    Ok((c, cpp, first))
}

/// Describes the first library. During the first query of one kind, the resolver sees the second one.
struct Overtaken<'a> {
    resolver: &'a Resolver,
    first: MadeUp,
    second: MadeUp,
    during: QueryKind,
    queries: AtomicUsize,
}

#[derive(Clone, Copy, PartialEq)]
enum QueryKind {
    Modules,
    Locate,
}

impl<'a> Overtaken<'a> {
    fn new(resolver: &'a Resolver, [first, second]: [&Path; 2], during: QueryKind) -> Self {
        let [first, second] = [first, second].map(|file| MadeUp::with_modules(vec![module(file, BIAS)]));
        Self { resolver, first, second, during, queries: AtomicUsize::new(0) }
    }

    /// Returns whether the second library has replaced the first one at this query.
    fn is_replaced(&self, query: QueryKind) -> bool {
        if query != self.during {
            return false;
        }
        let is_first = self.queries.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first {
            self.resolver.see_modules(&self.second);
        }
        !is_first
    }
}

impl FrameNames for Overtaken<'_> {
    fn locate(&self, _: RawFrame) -> Option<SourceLocation> {
        self.is_replaced(QueryKind::Locate);
        Some(location("located", "file.py", 1))
    }

    fn has_extra_frames(&self) -> bool {
        false
    }

    fn frames_behind(&self, _: &str, _: u32) -> Vec<SourceLocation> {
        Vec::new()
    }

    fn modules(&self) -> ModuleList {
        if self.is_replaced(QueryKind::Modules) { self.second.modules() } else { self.first.modules() }
    }
}

#[test]
fn a_name_from_before_its_module_was_replaced_is_not_kept() {
    let (c, cpp, first) = or_skip!(rivals());
    let (stacks, resolver) = (StackTable::new(), resolver());
    let overtaken = Overtaken::new(&resolver, [&c, &cpp], QueryKind::Locate);
    // The address is looked up before the Python frame is located, and kept after.
    let id = stacks.intern(&[native(BIAS + first + 1), python(1, 1)]).expect("there is memory");
    let batch = resolver.resolve(&stacks, &[id], &overtaken);
    assert_eq!(names(&batch[0]), ["sw_first", "located"]);
    let batch = resolver.resolve(&stacks, &[id], &overtaken.second);
    assert_eq!(batch[0][0].module.as_deref(), Some("libshapes.so"), "{:?}", batch[0]);
}

#[test]
fn an_older_query_of_the_loader_does_not_replace_a_newer_one() {
    let (c, cpp, first) = or_skip!(rivals());
    let resolver = resolver();
    let overtaken = Overtaken::new(&resolver, [&c, &cpp], QueryKind::Modules);
    let chain = resolver.resolve_addresses(&[CodeAddress::instruction_pointer(BIAS + first)], &overtaken).remove(0);
    assert_eq!(chain[0].module.as_deref(), Some("libshapes.so"));
    assert_eq!(overtaken.queries.load(Ordering::Relaxed), 2);
}

#[test]
fn a_missing_file_is_looked_for_again() {
    let (c, _, first) = or_skip!(rivals());
    let moved = std::env::temp_dir().join(format!("stackweave-profile-{}-libmoved.so", std::process::id()));
    let mut missing = module(&c, BIAS);
    missing.path.clone_from(&moved);
    let (resolver, made_up) = (resolver(), MadeUp::with_modules(vec![missing]));
    let nameless = at_address(&resolver, &made_up, first).0;
    assert_eq!(nameless, format!("{}+{first:#x}", moved.file_name().and_then(|name| name.to_str()).expect("text")));
    fs::copy(&c, &moved).expect("the temporary directory can be written");
    let named = at_address(&resolver, &made_up, first).0;
    fs::remove_file(&moved).expect("it was just written");
    assert_eq!(named, "sw_first");
}

#[test]
fn generated_code_is_resolved_again() {
    let pid = std::process::id();
    let path = Path::new("/tmp").join(format!("perf-{pid}.map"));
    let mut map = fs::File::create(&path).expect("perf maps can be written");
    writeln!(map, "7000 100 before").expect("it is open");
    let mut options = SymbolizerOptions::default();
    options.perf_map_of = Some(pid);
    let (resolver, made_up) = (Resolver::new(options), MadeUp::default());
    let name_at =
        |address| resolver.resolve_addresses(&[CodeAddress::return_address(address)], &made_up)[0][0].name.to_string();
    assert_eq!(name_at(0x7010), "before");
    writeln!(map, "7000 100 after\n9000 100 other").expect("it is open");
    assert_eq!(name_at(0x9010), "other", "the map is read again for an address that is not in it");
    let again = name_at(0x7010);
    fs::remove_file(&path).expect("it was just written");
    assert_eq!(again, "after");
}
