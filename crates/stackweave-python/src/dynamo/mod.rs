//! Classes that take the place of those in `torch/_dynamo/dynamo_profiler.py`: the same names, fields and methods.
//!
//! Objects take no other attributes, those of subclasses do. A `__dict__` of PyO3 is allocated before the fields are there, and
//! on Python 3.11 that may begin a collection, which looks at them.

mod dumping;
mod entry;
mod keys;
mod open_places;
mod prof_file;
mod report;
mod state;
mod timing;

use pyo3::prelude::*;

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<timing::FunctionTraceTiming>()?;
    module.add_class::<entry::ProfilerStackEntry>()?;
    module.add_class::<state::DynamoProfilerState>()
}

/// What Python's `==` of two dataclasses says: nothing, unless both are of exactly one class.
fn same_fields<'py>(
    this: &Bound<'py, PyAny>,
    other: &Bound<'py, PyAny>,
    fields: impl Fn(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = this.py();
    if !this.get_type().is(other.get_type()) {
        return Ok(py.NotImplemented().into_bound(py));
    }
    let is_equal = fields(this)?.eq(fields(other)?)?;
    Ok(pyo3::types::PyBool::new(py, is_equal).to_owned().into_any())
}

/// What `copy` and `pickle` make an equal object of: its class, the arguments of that, and the attributes of a subclass.
fn reduced<'py>(this: &Bound<'py, PyAny>, arguments: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let others = this.getattr_opt(pyo3::intern!(this.py(), "__dict__"))?;
    Ok((this.get_type(), arguments, others).into_pyobject(this.py())?.into_any())
}
