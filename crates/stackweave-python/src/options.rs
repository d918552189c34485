//! Reads dicts of options, which the table of options in Python has checked.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Error;

/// Declares a struct whose fields are the entries of a dict, and `from_dict` for it. Another entry is an error, and so is a
/// missing one, unless its type is an `Option`.
macro_rules! from_dict {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($field:ident: $kind:ty,)* }) => {
        $(#[$meta])*
        $vis struct $name {
            $($field: $kind,)*
        }

        impl $name {
            $vis fn from_dict(dict: &pyo3::Bound<'_, pyo3::types::PyDict>) -> pyo3::PyResult<Self> {
                $crate::options::check_names(dict, &[$(stringify!($field)),*])?;
                Ok(Self { $($field: $crate::options::entry(dict, stringify!($field))?,)* })
            }
        }
    };
}
pub(crate) use from_dict;

/// Fails if the dict has an entry that is not one of these.
pub(crate) fn check_names(dict: &Bound<'_, PyDict>, names: &[&str]) -> PyResult<()> {
    for key in dict.keys() {
        let name: String = key.extract()?;
        if !names.contains(&name.as_str()) {
            return Err(Error::other(format!("there is no option {name}")).into());
        }
    }
    Ok(())
}

/// Reads an entry; a missing one is None.
pub(crate) fn entry<T: for<'a, 'py> FromPyObject<'a, 'py>>(dict: &Bound<'_, PyDict>, name: &str) -> PyResult<T> {
    let value = dict.get_item(name)?.unwrap_or_else(|| dict.py().None().into_bound(dict.py()));
    value.extract::<T>().map_err(|error| {
        let error: PyErr = error.into();
        Error::other(format!("the option {name}: {error}")).into()
    })
}
