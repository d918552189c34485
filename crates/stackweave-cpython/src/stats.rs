//! Statistics of the Python source.

/// How Python frames are read, and what is kept of code objects.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PythonStats {
    /// `direct`, or `public API` if the direct walk is not possible.
    pub reader: &'static str,
    /// Why the direct walk is not possible.
    pub fallback_reason: Option<String>,
    /// The second number of Python's version.
    pub minor: u8,
    /// How many different code objects were seen so far.
    pub codes: u32,
    /// How many code objects are known by their address: seen, and alive.
    pub live_codes: u64,
    /// How many known code objects have died.
    pub deaths: u64,
    /// Bytes that were copied from code objects.
    pub code_bytes: usize,
    /// How many code objects were decoded for their names.
    pub decoded_codes: usize,
    /// `watching` if the death of code objects is detected; `pinning` if those that are seen are kept alive.
    pub death_watch: &'static str,
}
