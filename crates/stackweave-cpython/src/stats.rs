//! Statistics of the Python source.

/// The way in which Python frames are read, and counts of code objects.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PythonStats {
    /// `direct`, or `public API` if the direct walk is not possible.
    pub reader: &'static str,
    /// The reason why the direct walk is not possible.
    pub fallback_reason: Option<String>,
    /// The second number of Python's version.
    pub minor: u8,
    /// The number of different code objects that were seen so far.
    pub codes: u32,
    /// The number of code objects that are known by their address: seen, and alive.
    pub live_codes: u64,
    /// The number of known code objects that have died.
    pub deaths: u64,
    /// Bytes that were copied from code objects.
    pub code_bytes: usize,
    /// The number of code objects that were decoded for their names.
    pub decoded_codes: usize,
    /// `watching` if the death of code objects is detected; `pinning` if those that are seen are kept alive.
    pub death_watch: &'static str,
}
