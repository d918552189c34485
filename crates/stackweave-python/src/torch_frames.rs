//! Frames in torch's format: name, filename and line. Native code without lines has its library and the offset instead.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use stackweave_core::{CodeAddress, ModuleList};
use stackweave_profile::{Frame, FrameKind, place_scripts};

use crate::resolving;
use crate::symbolizing::{ADDRESS_END, resolve_all};

/// Torch's text for unknown values.
const UNKNOWN: &str = "??";

/// Names the frames of many tracebacks at once. Returns lists of dicts with only name, filename and line.
///
/// Leading frames of another interpreter move to just inside the innermost native function whose name contains an item of
/// script_runs_in; the first item that matches any function is used. Functions of own_file that requested native frames are
/// omitted with the functions that they called. After that, native frames are omitted from tracebacks for which hides_native is
/// true. Equal frames are the same dict, equal tracebacks the same list.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn torch_frames<'py>(
    tracebacks: &Bound<'py, PyAny>,
    hides_native: Vec<bool>,
    own_file: &str,
    script_runs_in: Vec<String>,
) -> PyResult<Bound<'py, PyList>> {
    let py = tracebacks.py();
    let stacks = resolve_all("symbolize_tracebacks", tracebacks)?;
    let (mut converter, mut dicts, mut lists) = (TorchFrames::default(), Dicts::new(), HashMap::new());
    let result = PyList::empty(py);
    let hides_native = hides_native.into_iter().chain(std::iter::repeat(false));
    for (stack, hides_native) in stacks.iter().zip(hides_native) {
        let list: Bound<'_, PyList> = match lists.entry((Arc::as_ptr(stack).cast::<()>(), hides_native)) {
            Entry::Occupied(known) => Bound::clone(known.get()),
            Entry::Vacant(new) => {
                let mut frames = place_scripts(stack, own_file, &script_runs_in);
                frames.retain(|frame| !(hides_native && frame.kind == FrameKind::Native));
                new.insert(converter.list_of(py, &frames, &mut dicts)?).clone()
            }
        };
        result.append(list)?;
    }
    Ok(result)
}

/// Returns (filename, line, function) for each return address. For inlined calls, it is the innermost location and the function
/// that they were inlined into.
#[pyfunction]
pub(crate) fn torch_address_frames(py: Python<'_>, addresses: Vec<u64>) -> PyResult<Vec<(String, u64, String)>> {
    // An invalid address is looked up as 0, which is unknown.
    let return_address = |address: u64| CodeAddress::return_address(if address < ADDRESS_END { address } else { 0 });
    let return_addresses: Vec<_> = addresses.into_iter().map(return_address).collect();
    let stacks = resolving::resolve_addresses(py, &return_addresses)?;
    let mut converter = TorchFrames::default();
    let row = |stack: &resolving::ResolvedStack| {
        let (Some(inner), Some(function)) = (stack.first(), stack.last()) else {
            return (UNKNOWN.to_owned(), 0, UNKNOWN.to_owned());
        };
        let (filename, line) = converter.location_of(inner);
        (filename, line, function.known_name().unwrap_or(UNKNOWN).to_owned())
    };
    Ok(stacks.iter().map(row).collect())
}

type Dicts<'py> = HashMap<*const Frame, Bound<'py, PyDict>>;

/// The loaded modules, and the loader's count of loads at that time. Querying the loader takes longer than a warm batch.
static LOADED_MODULES: Mutex<Option<(u64, Arc<ModuleList>)>> = Mutex::new(None);

/// Returns the modules that are loaded, and perhaps some that were unloaded. Called with the GIL held, so a fork never finds the
/// lock held.
fn loaded_modules() -> Arc<ModuleList> {
    // SAFETY: the loader's counter is never freed, and is read as it requires.
    let loads = stackweave_unwind::loads_counter().map(|counter| unsafe { counter.as_ptr().read_volatile() });
    let mut cached = LOADED_MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    match (loads, &*cached) {
        (Some(loads), Some((then, modules))) if loads == *then => Arc::clone(modules),
        _ => {
            let modules = Arc::new(stackweave_unwind::modules());
            *cached = loads.map(|loads| (loads, Arc::clone(&modules)));
            modules
        }
    }
}

/// Converts frames to dicts.
#[derive(Default)]
struct TorchFrames {
    /// The loaded modules, after the first query.
    modules: Option<Arc<ModuleList>>,
}

impl TorchFrames {
    fn list_of<'py>(
        &mut self,
        py: Python<'py>,
        frames: &[Arc<Frame>],
        dicts: &mut Dicts<'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for frame in frames {
            match dicts.entry(Arc::as_ptr(frame)) {
                Entry::Occupied(known) => list.append(known.get())?,
                Entry::Vacant(new) => list.append(&*new.insert(self.dict_of(py, frame)?))?,
            }
        }
        Ok(list)
    }

    fn dict_of<'py>(&mut self, py: Python<'py>, frame: &Frame) -> PyResult<Bound<'py, PyDict>> {
        let (filename, line) = self.location_of(frame);
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "name"), frame.known_name().unwrap_or(UNKNOWN))?;
        dict.set_item(intern!(py, "filename"), filename)?;
        dict.set_item(intern!(py, "line"), line)?;
        Ok(dict)
    }

    fn location_of(&mut self, frame: &Frame) -> (String, u64) {
        let line = frame.position.line.map_or(0, u64::from);
        if let Some(filename) = &frame.filename
            && (line > 0 || frame.kind != FrameKind::Native)
        {
            return (filename.to_string(), line);
        }
        let modules = self.modules.get_or_insert_with(loaded_modules);
        // The address of the call, not of the instruction after it.
        let location = frame.address.and_then(|address| {
            let address = address.saturating_sub(1);
            modules.find(address).map(|(_, module)| (module.path.display().to_string(), module.stated(address)))
        });
        location.unwrap_or_else(|| (frame.module.as_deref().unwrap_or(UNKNOWN).to_owned(), 0))
    }
}
