//! The Python class `Hidden`.

use pyo3::prelude::*;
use stackweave_profile::timing::TimingReport;
use stackweave_profile::{Hidden, Measure, Profile};

use super::{cost, own_as_self};

/// The argument that shows everything.
pub(super) const ALL: &str = "all=True";

/// Adds the type to the module.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyHidden>()?;
    own_as_self(&module.py().get_type::<PyHidden>())
}

/// The functions that are not shown because they are inside libraries or the interpreter. all=True shows them.
///
/// >>> with stackweave.trace("calls.swv") as recorder:
/// ...     main()
/// >>> recorder.recording.tree().hidden.share
/// 0.0
#[pyclass(frozen, module = "stackweave", name = "Hidden")]
#[derive(Debug)]
pub(crate) struct PyHidden {
    hidden: Hidden,
    total: i64,
    measure: Measure,
}

impl PyHidden {
    /// Returns what a profile hides.
    pub(super) fn of(profile: &Profile) -> Self {
        Self { hidden: profile.hidden(), total: profile.total(), measure: profile.measure() }
    }

    /// Returns what a report of phases hides.
    pub(super) fn of_phases(report: &TimingReport) -> Self {
        Self { hidden: report.hidden, total: report.total_ns, measure: Measure::WallTime }
    }
}

#[pymethods]
impl PyHidden {
    /// The number of functions that are never shown.
    #[getter]
    fn functions(&self) -> usize {
        self.hidden.functions
    }

    /// The self cost of hidden calls, in seconds if the measure is time. It counts for their nearest callers that are shown.
    #[getter]
    fn own<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        cost(py, self.measure, self.hidden.self_cost)
    }

    /// The share of this cost in the total, from 0 to 1.
    #[getter]
    fn share(&self) -> f64 {
        self.hidden.share(self.total, self.measure)
    }

    /// The number of functions inside libraries that are shown because of their cost.
    #[getter]
    fn costly(&self) -> usize {
        self.hidden.costly
    }

    /// Returns a sentence; empty if the share is negligible.
    fn __str__(&self) -> String {
        self.hidden.sentence(self.total, self.measure, ALL).unwrap_or_default()
    }

    fn __repr__(&self) -> String {
        format!("<stackweave.Hidden {} functions, {:.1}% of self>", self.hidden.functions, self.share() * 100.0)
    }
}
