//! The trace recorder: every Python call, in a recording.
