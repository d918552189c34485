//! Resolves many tracebacks or addresses at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyTuple};
use pyo3::{IntoPyObjectExt, intern};
use stackweave_core::{CodeAddress, StackId};
use stackweave_profile::{Frame, write_json};

use crate::errors::Error;
use crate::frame::{PyFrame, object_of};
use crate::keywords::type_name;
use crate::resolving::{self, ResolvedStack};
use crate::traceback_object::Traceback;

/// Addresses in user space are lower than this.
pub(crate) const ADDRESS_END: u64 = 1 << 57;

/// Names the frames of many tracebacks at once. Returns a list of dicts for each, innermost first.
///
/// Each dict has name, filename ("" if unknown), line (0 if unknown), kind and inlined, and, where they are known, qualname,
/// column, end_line, end_column, module and address. Equal frames are the same dict, equal tracebacks the same list.
///
/// >>> [frames] = stackweave.symbolize([stackweave.capture(native=False)])
/// >>> frames[0]["name"]
/// '<module>'
#[pyfunction]
pub(crate) fn symbolize<'py>(tracebacks: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = tracebacks.py();
    let stacks = resolve_all("symbolize", tracebacks)?;
    let (mut dicts, mut lists) = (HashMap::new(), HashMap::new());
    let result = PyList::empty(py);
    for stack in &stacks {
        let key = Arc::as_ptr(stack).cast::<()>();
        let list = match lists.entry(key) {
            Entry::Occupied(known) => Bound::clone(known.get()),
            Entry::Vacant(new) => new.insert(list_of(py, stack, &mut dicts)?).clone(),
        };
        result.append(list)?;
    }
    Ok(result)
}

/// Returns the result of symbolize() as JSON text, in which addresses are hexadecimal strings.
///
/// >>> import json
/// >>> json.loads(stackweave.to_json([stackweave.capture(native=False)]))[0][0]["name"]
/// '<module>'
#[pyfunction]
pub(crate) fn to_json(tracebacks: &Bound<'_, PyAny>) -> PyResult<String> {
    let stacks = resolve_all("to_json", tracebacks)?;
    tracebacks.py().detach(|| json(&stacks))
}

/// Returns the frames at return addresses: a list for each, innermost first, with several frames where calls were inlined.
///
/// >>> stackweave.resolve_addresses([])
/// []
#[pyfunction]
pub(crate) fn resolve_addresses<'py>(addresses: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = addresses.py();
    let mut read = Vec::new();
    for (index, address) in iterate("resolve_addresses", "int", addresses)?.enumerate() {
        read.push(address_of(index, &address?)?);
    }
    let result = PyList::empty(py);
    for stack in resolving::resolve_addresses(py, &read)? {
        let frames: Vec<_> = stack.iter().map(|frame| object_of(py, frame)).collect::<PyResult<_>>()?;
        result.append(PyList::new(py, frames)?)?;
    }
    Ok(result)
}

/// Returns the frames of one traceback as a JSON list.
pub(crate) fn json_of(frames: &Bound<'_, PyTuple>) -> PyResult<String> {
    let text = json(&[stack_of(frames)?])?;
    // Omit the brackets of the outer list.
    Ok(text[1..text.len() - 1].to_owned())
}

fn json(stacks: &[ResolvedStack]) -> PyResult<String> {
    let mut text = Vec::new();
    write_json(&mut text, stacks).map_err(|error| Error::other(error.to_string()))?;
    Ok(String::from_utf8(text)?)
}

/// Returns the named stacks of tracebacks, which are resolved in one batch. Equal tracebacks share their stack.
pub(crate) fn resolve_all(function: &str, tracebacks: &Bound<'_, PyAny>) -> PyResult<Vec<ResolvedStack>> {
    let mut ids = Vec::new();
    let mut sources: Vec<Result<usize, ResolvedStack>> = Vec::new();
    for (index, object) in iterate(function, "Traceback", tracebacks)?.enumerate() {
        let object = object?;
        let Some(traceback) = Traceback::from_object(&object) else {
            let message = format!("{function}(): item {index} must be a Traceback, not {}", type_name(&object));
            return Err(PyTypeError::new_err(message));
        };
        sources.push(match traceback.object().stack {
            Some(stack) => {
                ids.push(stack);
                Ok(ids.len() - 1)
            }
            None => Err(stack_of(&traceback.frames()?)?),
        });
    }
    let resolved = if ids.is_empty() { Vec::new() } else { resolving::resolve(tracebacks.py(), &ids)? };
    let stack =
        |source: Result<usize, ResolvedStack>| source.map_or_else(|stack| stack, |index| Arc::clone(&resolved[index]));
    Ok(sources.into_iter().map(stack).collect())
}

fn stack_of(frames: &Bound<'_, PyTuple>) -> PyResult<ResolvedStack> {
    frames.iter().map(|frame| Ok(Arc::clone(&frame.cast::<PyFrame>()?.get().frame))).collect()
}

fn iterate<'py>(
    function: &str,
    item: &str,
    items: &Bound<'py, PyAny>,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyAny>>> + use<'py>> {
    items
        .try_iter()
        .map_err(|_| PyTypeError::new_err(format!("{function}() takes a list of {item}, not {}", type_name(items))))
}

fn address_of(index: usize, value: &Bound<'_, PyAny>) -> PyResult<CodeAddress> {
    if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
        let message = format!("resolve_addresses(): item {index} must be an int, not {}", type_name(value));
        return Err(PyTypeError::new_err(message));
    }
    match value.extract::<u64>() {
        Ok(address) if address < ADDRESS_END => Ok(CodeAddress::return_address(address)),
        _ => Err(PyValueError::new_err(format!("resolve_addresses(): item {index} is not an address: {value}"))),
    }
}

type Dicts<'py> = HashMap<*const Frame, Bound<'py, PyDict>>;

fn list_of<'py>(py: Python<'py>, stack: &ResolvedStack, dicts: &mut Dicts<'py>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for frame in stack.iter() {
        let key = Arc::as_ptr(frame);
        match dicts.entry(key) {
            Entry::Occupied(known) => list.append(known.get())?,
            Entry::Vacant(new) => list.append(&*new.insert(dict_of(py, frame)?))?,
        }
    }
    Ok(list)
}

fn dict_of<'py>(py: Python<'py>, frame: &Frame) -> PyResult<Bound<'py, PyDict>> {
    let Frame { kind, name, qualname, filename, first_line: _, position, module, is_inlined, address, is_own: _ } =
        frame;
    let dict = PyDict::new(py);
    dict.set_item(intern!(py, "name"), &**name)?;
    dict.set_item(intern!(py, "filename"), filename.as_deref().unwrap_or_default())?;
    dict.set_item(intern!(py, "line"), position.line.unwrap_or(0))?;
    dict.set_item(intern!(py, "kind"), kind.as_str())?;
    let known = [
        (intern!(py, "qualname"), qualname.as_deref().into_bound_py_any(py)?),
        (intern!(py, "column"), position.column.into_bound_py_any(py)?),
        (intern!(py, "end_line"), position.end_line.into_bound_py_any(py)?),
        (intern!(py, "end_column"), position.end_column.into_bound_py_any(py)?),
        (intern!(py, "module"), module.as_deref().into_bound_py_any(py)?),
        (intern!(py, "inlined"), is_inlined.into_bound_py_any(py)?),
        (intern!(py, "address"), address.into_bound_py_any(py)?),
    ];
    for (key, value) in known {
        if !value.is_none() {
            dict.set_item(key, value)?;
        }
    }
    Ok(dict)
}

/// Returns the traceback of a stack number that current_stack_id() has returned in this process.
///
/// The traceback does not know whether the stack was complete.
///
/// >>> number = stackweave.current_stack_id()
/// >>> stackweave.traceback_of(number).frames[0].name
/// '<module>'
#[pyfunction]
pub(crate) fn traceback_of<'py>(stack_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if !stack_id.is_instance_of::<PyInt>() || stack_id.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(format!("stack_id must be an int, not {}", type_name(stack_id))));
    }
    let known = stack_id.extract::<u32>().ok().and_then(StackId::new).filter(|id| is_known(*id));
    match known {
        Some(stack) => crate::traceback_object::of_stack(stack_id.py(), Some(stack), None),
        None => Err(PyValueError::new_err(format!("no stack of this process has the number {stack_id}"))),
    }
}

fn is_known(id: StackId) -> bool {
    id == StackId::EMPTY || stackweave_capture::stacks().len(id) > 0
}
