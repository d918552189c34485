//! What the Python source says about itself.

/// How Python frames are read, and what is kept of code objects.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PythonStats {
    /// `direct`, or `public API` where the direct way is not open.
    pub reader: &'static str,
    /// Why the direct way is not open.
    pub fallback_reason: Option<String>,
    /// The second number of Python's version.
    pub minor: u8,
    /// Code objects seen so far that differ.
    pub codes: u32,
    /// Code objects that are known by their address: seen, and alive.
    pub live_codes: u64,
    /// How many known code objects have died.
    pub deaths: u64,
    /// Bytes that were copied from code objects.
    pub code_bytes: usize,
    /// Code objects whose names have been asked for.
    pub decoded_codes: usize,
    /// `watching` where the death of code objects is noticed; `pinning` where those that are seen are kept alive.
    pub death_watch: &'static str,
}
