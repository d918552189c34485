//! Frames as torch writes them: name, filename and line, and for native code without lines the library and the place in it.

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

/// What torch says where nothing is known.
const UNKNOWN: &str = "??";

/// Names the frames of many tracebacks at once: lists of dicts with name, filename and line only.
///
/// Leading frames of another interpreter move to just inside the innermost native function whose name contains the first of
/// script_runs_in that any does. Functions of own_file that asked for native frames are left out, and what they called. Where
/// hides_native is true for a traceback, its native frames are left out after that. Equal frames are the same dict, equal
/// tracebacks the same list.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn plain_frames<'py>(
    tracebacks: &Bound<'py, PyAny>,
    hides_native: Vec<bool>,
    own_file: &str,
    script_runs_in: Vec<String>,
) -> PyResult<Bound<'py, PyList>> {
    let py = tracebacks.py();
    let stacks = resolve_all("symbolize_tracebacks", tracebacks)?;
    let (mut plain, mut dicts, mut lists) = (Plain::default(), Dicts::new(), HashMap::new());
    let result = PyList::empty(py);
    let hides_native = hides_native.into_iter().chain(std::iter::repeat(false));
    for (stack, hides_native) in stacks.iter().zip(hides_native) {
        let list: Bound<'_, PyList> = match lists.entry((Arc::as_ptr(stack).cast::<()>(), hides_native)) {
            Entry::Occupied(known) => Bound::clone(known.get()),
            Entry::Vacant(new) => {
                let mut frames = place_scripts(stack, own_file, &script_runs_in);
                frames.retain(|frame| !(hides_native && frame.kind == FrameKind::Native));
                new.insert(plain.list_of(py, &frames, &mut dicts)?).clone()
            }
        };
        result.append(list)?;
    }
    Ok(result)
}

/// What is at these return addresses: (filename, line, function) for each. Of inlined calls, the innermost place in the
/// function that they were inlined into.
#[pyfunction]
pub(crate) fn plain_addresses(py: Python<'_>, addresses: Vec<u64>) -> PyResult<Vec<(String, u64, String)>> {
    // What no address can be is looked up as 0, which nobody knows.
    let known = |address: u64| CodeAddress::return_address(if address < ADDRESS_END { address } else { 0 });
    let asked: Vec<_> = addresses.into_iter().map(known).collect();
    let stacks = resolving::resolve_addresses(py, &asked)?;
    let mut plain = Plain::default();
    let answer = |stack: &resolving::Stack| {
        let (Some(inner), Some(function)) = (stack.first(), stack.last()) else {
            return (UNKNOWN.to_owned(), 0, UNKNOWN.to_owned());
        };
        let (filename, line) = plain.place_of(inner);
        (filename, line, function.own_name().unwrap_or(UNKNOWN).to_owned())
    };
    Ok(stacks.iter().map(answer).collect())
}

type Dicts<'py> = HashMap<*const Frame, Bound<'py, PyDict>>;

/// What is loaded, and how many modules had ever been. Asking the loader takes longer than a warm batch.
static LOADED: Mutex<Option<(u64, Arc<ModuleList>)>> = Mutex::new(None);

/// The modules that are loaded, and perhaps some that were. Called with the GIL held, so a fork never finds the lock taken.
fn loaded() -> Arc<ModuleList> {
    // SAFETY: the loader's counter never goes away, and is read as it asks for.
    let loads = stackweave_unwind::loads_counter().map(|counter| unsafe { counter.as_ptr().read_volatile() });
    let mut kept = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    match (loads, &*kept) {
        (Some(loads), Some((then, modules))) if loads == *then => Arc::clone(modules),
        _ => {
            let modules = Arc::new(stackweave_unwind::modules());
            *kept = loads.map(|loads| (loads, Arc::clone(&modules)));
            modules
        }
    }
}

/// Says where frames are.
#[derive(Default)]
struct Plain {
    /// What is loaded, once it was asked for.
    modules: Option<Arc<ModuleList>>,
}

impl Plain {
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
        let (filename, line) = self.place_of(frame);
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "name"), frame.own_name().unwrap_or(UNKNOWN))?;
        dict.set_item(intern!(py, "filename"), filename)?;
        dict.set_item(intern!(py, "line"), line)?;
        Ok(dict)
    }

    fn place_of(&mut self, frame: &Frame) -> (String, u64) {
        let line = frame.position.line.map_or(0, u64::from);
        if let Some(filename) = &frame.filename
            && (line > 0 || frame.kind != FrameKind::Native)
        {
            return (filename.to_string(), line);
        }
        let modules = self.modules.get_or_insert_with(loaded);
        // The address of a call, not of what comes after it.
        let place = frame.address.and_then(|address| {
            let address = address.saturating_sub(1);
            modules.find(address).map(|(_, module)| (module.path.display().to_string(), module.stated(address)))
        });
        place.unwrap_or_else(|| (frame.module.as_deref().unwrap_or(UNKNOWN).to_owned(), 0))
    }
}
