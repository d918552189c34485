//! The exceptions of the package.

use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(stackweave, StackweaveError, PyException, "What the package raises when it can't do what was asked.");
