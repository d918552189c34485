//! Names for the native frames of another process, resolved after it was resumed.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use stackweave_core::{CodeAddress, FrameNames, Module, ModuleList, NoNames, RawFrame, SourceLocation};
use stackweave_profile::{Frame, Resolver};
use stackweave_symbolize::SymbolizerOptions;

use crate::maps;
use crate::modules::{Modules, RemoteModule};
use crate::process::Process;

/// The frames at an address, innermost first: several if calls were inlined.
pub(crate) type NamedFrames = Arc<[Arc<Frame>]>;

/// Resolves each of `addresses`, in the same order, with the files that the process has loaded.
pub(crate) fn name(
    addresses: &[CodeAddress],
    modules: &Modules,
    process: Process,
    options: SymbolizerOptions,
) -> Vec<NamedFrames> {
    let files = modules.as_slice().iter().filter(|module| !is_kernels(module)).map(openable);
    let files = KnownModules(ModuleList::new(files.collect()));
    let mut options = options;
    options.perf_map_of = options.perf_map_of.or(Some(process.number));
    if has_own_root(process) {
        options.debug_folders.push(process.file("root/usr/lib/debug"));
    }
    let resolver = Resolver::new(options);
    let named = resolver.resolve_addresses(addresses, &files);
    let kernels = KernelModule::find(modules);
    let named = addresses.iter().zip(named).map(|(address, named)| match modules.find(address.lookup()) {
        Some(module) if is_kernels(module) => kernels.as_ref().map_or(named, |kernels| kernels.name(*address)),
        Some(module) => shown(named, module),
        None => named,
    });
    named.collect()
}

/// A process of which only the modules are known.
struct KnownModules(ModuleList);

impl FrameNames for KnownModules {
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        NoNames.locate(frame)
    }

    fn has_extra_frames(&self) -> bool {
        false
    }

    fn frames_behind(&self, filename: &str, line: u32) -> Vec<SourceLocation> {
        NoNames.frames_behind(filename, line)
    }

    fn modules(&self) -> ModuleList {
        self.0.clone()
    }
}

fn is_kernels(module: &RemoteModule) -> bool {
    module.module.path.as_os_str() == "[vdso]"
}

/// Returns the module with a path at which its file can be opened from here.
fn openable(module: &RemoteModule) -> Module {
    let file = module.file.clone().unwrap_or_else(|| module.module.path.clone());
    Module { path: file, ..module.module.clone() }
}

/// Returns the frames with the module's name in the process.
fn shown(named: NamedFrames, module: &RemoteModule) -> NamedFrames {
    let name = module.module.name();
    let opened = named.first().and_then(|frame| frame.module.clone());
    let Some(opened) = opened.filter(|opened| **opened != *name) else { return named };
    let module: Arc<str> = name.into();
    let frames = named.iter().map(|frame| {
        let mut frame = Frame::clone(frame);
        // A function without a name is described by its offset in the module.
        if let Some(place) = frame.name.strip_prefix(&*opened).filter(|place| place.starts_with("+0x")) {
            frame.name = format!("{module}{place}").into();
        }
        frame.module = Some(Arc::clone(&module));
        Arc::new(frame)
    });
    frames.collect()
}

/// Returns whether the process sees a different file system.
fn has_own_root(process: Process) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let root = |path: PathBuf| fs::metadata(path).ok().map(|root| (root.dev(), root.ino()));
    root(process.file("root/")) != root("/".into())
}

/// The module that the kernel maps into each process, at different addresses. It is the same in all processes, so
/// its addresses are looked up in this process.
struct KernelModule {
    resolver: Resolver,
    here: KnownModules,
    /// The distance from an address in the process to the same address here.
    distance: u64,
}

impl KernelModule {
    fn find(modules: &Modules) -> Option<Self> {
        let there = &modules.as_slice().iter().find(|module| is_kernels(module))?.module;
        let maps = maps::parse(&fs::read("/proc/self/maps").ok()?);
        let start = maps.iter().find(|mapping| mapping.is_vdso())?.start;
        let distance = start.wrapping_sub(there.start);
        let moved = |address: u64| address.wrapping_add(distance);
        let here = Module { start, end: moved(there.end), bias: moved(there.bias), ..there.clone() };
        Some(Self {
            resolver: Resolver::new(SymbolizerOptions::default()),
            here: KnownModules(ModuleList::new(vec![here])),
            distance,
        })
    }

    fn name(&self, address: CodeAddress) -> NamedFrames {
        let here = address.address().wrapping_add(self.distance);
        let here =
            if address.is_exact() { CodeAddress::instruction_pointer(here) } else { CodeAddress::return_address(here) };
        let named = self.resolver.resolve_addresses(&[here], &self.here).into_iter().next().unwrap_or_default();
        let put_back = |frame: &Arc<Frame>| Arc::new(Frame { address: Some(address.address()), ..Frame::clone(frame) });
        named.iter().map(put_back).collect()
    }
}
