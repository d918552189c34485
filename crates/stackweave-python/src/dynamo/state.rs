//! What was timed, and what is open.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit, intern};
use stackweave_files::output::NumberedFiles;

use super::dumping;
use super::entry::ProfilerStackEntry;
use super::open_places::{OpenPlaces, place};
use super::report::Report;

/// The timings of one compilation: torch's class of this name, with its methods and attributes.
///
/// timings and stack are lists that may be changed. Whether a call is a recursion is known without a look at the whole
/// stack, and calls from one place share one call_stack.
#[pyclass(module = "stackweave.torch.dynamo", subclass, weakref)]
pub(crate) struct DynamoProfilerState {
    #[pyo3(get, set)]
    pub(super) timings: Py<PyList>,
    #[pyo3(get, set)]
    stack: Py<PyList>,
    open: OpenPlaces,
    pub(super) files: NumberedFiles,
    /// What was printed last.
    pub(super) printed: Option<u64>,
    /// What was saved last, by the name that was asked for.
    pub(super) saved: HashMap<PathBuf, u64>,
}

#[pymethods]
impl DynamoProfilerState {
    /// Subclasses may have an __init__ with arguments.
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
        Ok(Self { timings, stack, open: OpenPlaces::new(py), files, printed: None, saved: HashMap::new() })
    }

    /// Keeps the timing of a call.
    fn record_timing(&self, timing: &Bound<'_, PyAny>) -> PyResult<()> {
        self.timings.bind(timing.py()).append(timing)
    }

    /// The list of all timings.
    fn get_timings(&self, py: Python<'_>) -> Py<PyList> {
        self.timings.clone_ref(py)
    }

    /// A call begins.
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
        let place = place(func_name, filename, firstlineno)?;
        let mut state = this.try_borrow_mut()?;
        let stack = state.stack.bind(py).clone();
        state.open.follow(&stack)?;
        entry.try_borrow_mut()?.is_primitive_call = state.open.enter(entry.as_any(), place)?;
        stack.append(entry)
    }

    /// The innermost call ends: its entry, or None if nothing is open.
    fn pop<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let stack = self.stack.bind(py).clone();
        let Some(last) = stack.len().checked_sub(1) else { return Ok(None) };
        self.open.follow(&stack)?;
        let entry = stack.get_item(last)?;
        stack.del_item(last)?;
        self.open.leave(py)?;
        Ok(Some(entry))
    }

    /// Adds the time of a call that has ended to what the innermost open one has spent in others.
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

    /// The function, file and line of the innermost open call.
    fn get_current_caller<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.open.follow(self.stack.bind(py))?;
        Ok(self.open.innermost(py))
    }

    /// The function, file and line of all open calls, outermost first.
    fn get_call_stack<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.open.follow(self.stack.bind(py))?;
        self.open.stack(py)
    }

    /// A pstats.Stats of all timings, which is saved to a file, too, and printed in short, if that is wanted.
    ///
    /// The cumulative time of a caller's edge is that of cProfile: a call of the same function by the same caller inside
    /// another one is not counted again. caller_edges has both this and the sum over all calls. A file that this state has not
    /// written is not overwritten: the name gets a number.
    #[pyo3(signature = (output_file=None, print_raw=false))]
    fn generate_pstats<'py>(
        this: &Bound<'py, Self>,
        output_file: Option<PathBuf>,
        print_raw: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let report = Self::report(this)?;
        if print_raw {
            dumping::print(this.py(), &report.text()?)?;
        }
        if let Some(path) = output_file.filter(|path| !path.as_os_str().is_empty()) {
            dumping::save_for_caller(this, &report, &path)?;
        }
        dumping::stats(this.py(), &report)
    }

    /// Draws the call graph of a file for pstats, whoever wrote it. Gives the path of the picture: svg_file, or that of the
    /// profile with the suffix .svg, with a number if another file is there. Prints what went wrong, and gives None then.
    #[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
    #[pyo3(signature = (profile_file, svg_file=None))]
    fn generate_svg(
        this: &Bound<'_, Self>,
        profile_file: PathBuf,
        svg_file: Option<PathBuf>,
    ) -> PyResult<Option<OsString>> {
        Ok(dumping::draw(this, &profile_file, svg_file)?.map(PathBuf::into_os_string))
    }

    /// Prints all timings, and saves them if a file is named, with a picture of the call graph.
    ///
    /// What was printed or saved already is not printed or saved again. A file that this state has not written is not
    /// overwritten: the name gets a number. The words of torch's environment variable are no names: 1, true, yes and on mean
    /// that it is printed only, 0, false, no and off that nothing is done. It raises no errors: a compilation goes on.
    #[pyo3(signature = (output_file=None, generate_svg=true))]
    fn dump_stats(this: &Bound<'_, Self>, output_file: Option<PathBuf>, generate_svg: bool) -> PyResult<()> {
        match dumping::dump(this, output_file, generate_svg) {
            Err(error) if error.is_instance_of::<PyException>(this.py()) => {
                error.write_unraisable(this.py(), Some(this.as_any()));
                Ok(())
            }
            done => done,
        }
    }

    /// By function and caller, each as file, line and name: calls, calls that are no recursion of this edge, own time,
    /// cumulative time as cProfile counts it, and that of all calls as torch counts it. Seconds.
    #[getter]
    fn caller_edges<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        Self::report(this)?.edges()
    }

    /// The files that were saved.
    #[getter]
    fn saved_files(&self) -> Vec<&OsStr> {
        self.files.paths().collect()
    }

    fn __getstate__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let py = this.py();
        let others = this.getattr_opt(intern!(py, "__dict__"))?;
        let kept = others.map_or_else(|| Ok(PyDict::new(py)), |others| others.cast_into::<PyDict>()?.copy())?;
        let state = this.try_borrow()?;
        kept.set_item(intern!(py, "timings"), &state.timings)?;
        kept.set_item(intern!(py, "stack"), &state.stack)?;
        Ok(kept)
    }

    fn __setstate__(this: &Bound<'_, Self>, kept: &Bound<'_, PyDict>) -> PyResult<()> {
        kept.iter().try_for_each(|(name, value)| this.setattr(name.cast_into::<PyString>()?, value))
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let kept = this.call_method0(intern!(this.py(), "__getstate__"))?;
        Ok((this.get_type(), (), kept).into_pyobject(this.py())?.into_any())
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
    fn report<'py>(this: &Bound<'py, Self>) -> PyResult<Report<'py>> {
        let timings = this.try_borrow()?.timings.bind(this.py()).clone();
        Report::of(&timings)
    }
}
