//! Classes that replace those of `torch/_dynamo/dynamo_profiler.py`, with the same names, fields and methods.
//!
//! Only objects of subclasses can have other attributes: PyO3 allocates a `__dict__` before the fields are initialized, and on
//! Python 3.11 that may start a garbage collection, which visits the fields.

mod function_numbers;
mod open_functions;
mod output;
mod prof_file;
mod report;
mod stack_entry;
mod state;
mod timing;

use pyo3::prelude::*;

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<timing::FunctionTraceTiming>()?;
    module.add_class::<stack_entry::ProfilerStackEntry>()?;
    module.add_class::<state::DynamoProfilerState>()
}

/// Compares fields as `==` of dataclasses does: returns NotImplemented unless both objects have the same class.
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

/// Returns the pickled form, which `copy` also uses: the class, its arguments, and the attributes of a subclass.
fn reduced<'py>(this: &Bound<'py, PyAny>, arguments: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let others = this.getattr_opt(pyo3::intern!(this.py(), "__dict__"))?;
    Ok((this.get_type(), arguments, others).into_pyobject(this.py())?.into_any())
}
