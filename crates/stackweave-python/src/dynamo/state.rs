//! The timings and the open calls of a compilation.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit, intern};
use stackweave_files::output::NumberedFiles;

use super::open_functions::{OpenFunctions, function_key};
use super::output;
use super::report::DynamoReport;
use super::stack_entry::ProfilerStackEntry;

/// The timings of one compilation, with the methods and attributes of torch's class of this name.
///
/// The program can change the lists timings and stack. Recursive calls are detected without a search of the stack, and calls from
/// one function share one call_stack.
#[pyclass(module = "stackweave.torch.dynamo", subclass, weakref)]
pub(crate) struct DynamoProfilerState {
    #[pyo3(get, set)]
    pub(super) timings: Py<PyList>,
    #[pyo3(get, set)]
    stack: Py<PyList>,
    open: OpenFunctions,
    pub(super) files: NumberedFiles,
    /// The hash of the report that was printed last.
    pub(super) printed: Option<u64>,
    /// The hashes of the reports that were saved last, by requested path.
    pub(super) saved: HashMap<PathBuf, u64>,
}

#[pymethods]
impl DynamoProfilerState {
    /// Accepts arguments for subclasses, whose __init__ may have some.
    #[new]
    #[classmethod]
    #[pyo3(signature = (*arguments, **keywords), text_signature = "()")]
    fn new(
        class: &Bound<'_, PyType>,
        arguments: &Bound<'_, PyTuple>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = class.py();
        if class.is(py.get_type::<Self>()) && (!arguments.is_empty() || keywords.is_some()) {
            return Err(PyTypeError::new_err("DynamoProfilerState() takes no arguments"));
        }
        let [timings, stack] = [(); 2].map(|()| PyList::empty(py).unbind());
        let files = NumberedFiles::default();
        Ok(Self { timings, stack, open: OpenFunctions::new(py), files, printed: None, saved: HashMap::new() })
    }

    /// Adds the timing of a call.
    fn record_timing(&self, timing: &Bound<'_, PyAny>) -> PyResult<()> {
        self.timings.bind(timing.py()).append(timing)
    }

    /// Returns the list of all timings.
    fn get_timings(&self, py: Python<'_>) -> Py<PyList> {
        self.timings.clone_ref(py)
    }

    /// Begins a call.
    fn push(
        this: &Bound<'_, Self>,
        func_name: Bound<'_, PyString>,
        filename: Bound<'_, PyString>,
        firstlineno: i64,
        start_time_ns: i64,
    ) -> PyResult<()> {
        let py = this.py();
        let (name, file) = (func_name.clone().unbind(), filename.clone().unbind());
        let entry = Bound::new(py, ProfilerStackEntry::new(name, file, firstlineno, start_time_ns, 0, true))?;
        let function_key = function_key(func_name, filename, firstlineno)?;
        let mut state = this.try_borrow_mut()?;
        let stack = state.stack.bind(py).clone();
        state.open.synchronize(&stack)?;
        entry.try_borrow_mut()?.is_primitive_call = state.open.enter(entry.as_any(), function_key)?;
        stack.append(entry)
    }

    /// Ends the innermost call. Returns its entry, or None if no call is open.
    fn pop<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let stack = self.stack.bind(py).clone();
        let Some(last) = stack.len().checked_sub(1) else { return Ok(None) };
        self.open.synchronize(&stack)?;
        let entry = stack.get_item(last)?;
        stack.del_item(last)?;
        self.open.leave(py)?;
        Ok(Some(entry))
    }

    /// Adds the time of a call that has ended to the callees' time of the innermost open call.
    fn add_child_time(&self, py: Python<'_>, child_cumtime_ns: i64) -> PyResult<()> {
        let stack = self.stack.bind(py);
        let Some(last) = stack.len().checked_sub(1) else { return Ok(()) };
        let entry = stack.get_item(last)?;
        if let Ok(entry) = entry.cast::<ProfilerStackEntry>() {
            let mut entry = entry.try_borrow_mut()?;
            entry.child_time_ns = entry.child_time_ns.saturating_add(child_cumtime_ns);
            return Ok(());
        }
        let name = intern!(py, "child_time_ns");
        entry.setattr(name, entry.getattr(name)?.add(child_cumtime_ns)?)
    }

    /// Returns the function, file and line of the innermost open call.
    fn get_current_caller<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.open.synchronize(self.stack.bind(py))?;
        Ok(self.open.innermost(py))
    }

    /// Returns the function, file and line of all open calls, outermost first.
    fn get_call_stack<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.open.synchronize(self.stack.bind(py))?;
        self.open.stack(py)
    }

    /// Returns pstats.Stats of all timings. Also saves them to output_file, and prints a table if print_raw is set.
    ///
    /// The cumulative time of a caller's edge is that of cProfile: a recursive call by the same caller is not counted again.
    /// caller_edges has both this time and the sum over all calls. A file that this state has not written is not overwritten: the new
    /// file has a number in its name.
    #[pyo3(signature = (output_file=None, print_raw=false))]
    fn generate_pstats<'py>(
        this: &Bound<'py, Self>,
        output_file: Option<PathBuf>,
        print_raw: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let report = Self::report(this)?;
        if print_raw {
            output::print(this.py(), &report.text()?)?;
        }
        if let Some(path) = output_file.filter(|path| !path.as_os_str().is_empty()) {
            output::save_for_caller(this, &report, &path)?;
        }
        output::stats(this.py(), &report)
    }

    /// Draws the call graph of a pstats file of any profiler. Returns the path of the picture: svg_file, or the path of the profile
    /// with the suffix .svg, with a number if that file exists. Prints errors, and returns None then.
    #[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
    #[pyo3(signature = (profile_file, svg_file=None))]
    fn generate_svg(
        this: &Bound<'_, Self>,
        profile_file: PathBuf,
        svg_file: Option<PathBuf>,
    ) -> PyResult<Option<OsString>> {
        Ok(output::draw(this, &profile_file, svg_file)?.map(PathBuf::into_os_string))
    }

    /// Prints all timings. If output_file is given, also saves them, with a picture of the call graph.
    ///
    /// Timings that were printed or saved already are not printed or saved again. A file that this state has not written is not
    /// overwritten: the new file has a number in its name. The values of torch's environment variable are not paths: 1, true, yes and
    /// on only print, 0, false, no and off do nothing. Errors are not raised, so that the compilation continues.
    #[pyo3(signature = (output_file=None, generate_svg=true))]
    fn dump_stats(this: &Bound<'_, Self>, output_file: Option<PathBuf>, generate_svg: bool) -> PyResult<()> {
        match output::dump(this, output_file, generate_svg) {
            Err(error) if error.is_instance_of::<PyException>(this.py()) => {
                error.write_unraisable(this.py(), Some(this.as_any()));
                Ok(())
            }
            done => done,
        }
    }

    /// The edges by function and caller, each as file, line and name: calls, calls that are not recursions of this edge, self time,
    /// cumulative time as cProfile counts it, and cumulative time of all calls as torch counts it. Times are in seconds.
    #[getter]
    fn caller_edges<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        Self::report(this)?.edges()
    }

    /// The paths of the saved files.
    #[getter]
    fn saved_files(&self) -> Vec<&OsStr> {
        self.files.paths().collect()
    }

    fn __getstate__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let py = this.py();
        let others = this.getattr_opt(intern!(py, "__dict__"))?;
        let attributes = others.map_or_else(|| Ok(PyDict::new(py)), |others| others.cast_into::<PyDict>()?.copy())?;
        let state = this.try_borrow()?;
        attributes.set_item(intern!(py, "timings"), &state.timings)?;
        attributes.set_item(intern!(py, "stack"), &state.stack)?;
        Ok(attributes)
    }

    fn __setstate__(this: &Bound<'_, Self>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        state.iter().try_for_each(|(name, value)| this.setattr(name.cast_into::<PyString>()?, value))
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let state = this.call_method0(intern!(this.py(), "__getstate__"))?;
        Ok((this.get_type(), (), state).into_pyobject(this.py())?.into_any())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.timings)?;
        visit.call(&self.stack)?;
        self.open.traverse(&visit)
    }

    fn __clear__(&mut self) {
        self.open.clear();
    }
}

impl DynamoProfilerState {
    fn report<'py>(this: &Bound<'py, Self>) -> PyResult<DynamoReport<'py>> {
        let timings = this.try_borrow()?.timings.bind(this.py()).clone();
        DynamoReport::of(&timings)
    }
}
