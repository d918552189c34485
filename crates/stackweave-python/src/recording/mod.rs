//! `Recording`: what happens in the program, in a file. The native part; `stackweave._recording` is the other.

mod admission;
mod arguments;
mod by_name;
mod exec_hook;
mod feed;
mod feeding;
mod feeding_methods;
mod json;
mod label_cache;
mod open_spans;
mod opened;
mod options;
mod span_object;
mod span_type;
mod started_programs;
mod this_process;
mod thread_names;
mod waiting;

pub(crate) use admission::{What, admit};
pub(crate) use arguments::{Detail, details_of, flag, is, keywords};
pub(crate) use feed::Feed;
pub(crate) use label_cache::{Place, frame_at, frame_of};
pub(crate) use open_spans::{count as open_span_count, cut as cut_spans};
pub(crate) use thread_names::{name_of_this_thread, name_threads};

use pyo3::prelude::*;

/// Adds the types to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Feed>()?;
    module.add_function(wrap_pyfunction!(started_programs::started_programs, module)?)?;
    feeding_methods::add_to(module.py())?;
    opened::add_to(module)?;
    span_type::add_to(module)
}
