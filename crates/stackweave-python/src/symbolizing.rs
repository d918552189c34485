//! Batches: many tracebacks, or addresses, to names at once.

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
use crate::resolving::{self, Stack};
use crate::traceback_object::Traceback;

/// The first bit that no address in user space has.
pub(crate) const ADDRESS_END: u64 = 1 << 57;

/// Names the frames of many tracebacks at once: a list of dicts for each, innermost first.
///
/// Each dict has name, filename ("" if it is not known), line (0 if it is not known), kind and inlined; and qualname, column,
/// end_line, end_column, module and address where they are known. Equal frames are the same dict, equal tracebacks the same
/// list.
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

/// As symbolize(), as JSON text. Addresses are strings in hexadecimal there.
#[pyfunction]
pub(crate) fn to_json(tracebacks: &Bound<'_, PyAny>) -> PyResult<String> {
    let stacks = resolve_all("to_json", tracebacks)?;
    tracebacks.py().detach(|| json(&stacks))
}

/// The frames at these return addresses: a list for each, innermost first, with more than one where calls were inlined.
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

/// The frames of one traceback as a JSON list.
pub(crate) fn json_of(frames: &Bound<'_, PyTuple>) -> PyResult<String> {
    let text = json(&[stack_of(frames)?])?;
    // Without the list around the list.
    Ok(text[1..text.len() - 1].to_owned())
}

fn json(stacks: &[Stack]) -> PyResult<String> {
    let mut text = Vec::new();
    write_json(&mut text, stacks).map_err(|error| Error::other(error.to_string()))?;
    Ok(String::from_utf8(text)?)
}

/// The named stacks of these tracebacks, in one batch. Equal ones share their stack.
pub(crate) fn resolve_all(function: &str, tracebacks: &Bound<'_, PyAny>) -> PyResult<Vec<Stack>> {
    let mut ids = Vec::new();
    let mut asked: Vec<Result<usize, Stack>> = Vec::new();
    for (index, object) in iterate(function, "Traceback", tracebacks)?.enumerate() {
        let object = object?;
        let Some(traceback) = Traceback::from_object(&object) else {
            let message = format!("{function}(): item {index} must be a Traceback, not {}", type_name(&object));
            return Err(PyTypeError::new_err(message));
        };
        asked.push(match traceback.object().stack {
            Some(stack) => {
                ids.push(stack);
                Ok(ids.len() - 1)
            }
            None => Err(stack_of(&traceback.frames()?)?),
        });
    }
    let resolved = if ids.is_empty() { Vec::new() } else { resolving::resolve(tracebacks.py(), &ids)? };
    let stack = |asked: Result<usize, Stack>| asked.map_or_else(|stack| stack, |place| Arc::clone(&resolved[place]));
    Ok(asked.into_iter().map(stack).collect())
}

fn stack_of(frames: &Bound<'_, PyTuple>) -> PyResult<Stack> {
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
        _ => Err(PyValueError::new_err(format!("resolve_addresses(): item {index} is no address: {value}"))),
    }
}

type Dicts<'py> = HashMap<*const Frame, Bound<'py, PyDict>>;

fn list_of<'py>(py: Python<'py>, stack: &Stack, dicts: &mut Dicts<'py>) -> PyResult<Bound<'py, PyList>> {
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
    let Frame { kind, name, qualname, filename, first_line: _, position, module, is_inlined, address } = frame;
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

/// The traceback of a stack by its number, which current_stack_id() gave in this process.
///
/// Whether the stack was whole is not known any more.
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
