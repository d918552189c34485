//! `Recording`: records events of the program. `stackweave._recorders.recorder` is the Python part.

mod admission;
mod arguments;
mod audit_hook;
mod feed;
mod feed_functions;
mod feed_methods;
mod feed_mode;
mod interpreter_symbols;
mod json;
mod keyword_arguments;
mod label_cache;
mod open_spans;
mod opened;
mod options;
mod span_functions;
mod span_object;
mod span_type;
mod started_programs;
mod thread_names;
mod writer_names;
mod writer_wait;

pub(crate) use admission::{SpanEffect, admit};
pub(crate) use feed::Feed;
pub(crate) use keyword_arguments::{Detail, details_of, flag, is_keyword, keywords};
pub(crate) use label_cache::{LabelArguments, frame_of, frame_of_label};
pub(crate) use open_spans::{count as open_span_count, truncate as truncate_spans};
pub(crate) use thread_names::{name_of_this_thread, name_threads};

use pyo3::prelude::*;

/// Adds the types to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Feed>()?;
    module.add_function(wrap_pyfunction!(started_programs::started_programs, module)?)?;
    feed_methods::add_to(module.py())?;
    opened::add_to(module)?;
    span_type::add_to(module)
}
