//! The registered code generators, which know the originals of generated code.

use core::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use stackweave_core::{ExtraFrames, SourceLocation};

static REGISTERED: RwLock<Vec<Arc<dyn ExtraFrames>>> = RwLock::new(Vec::new());

/// A registered code generator. It is called for every Python frame that is resolved, until this is dropped.
#[must_use = "dropping it removes the code generator"]
pub struct RegisteredExtraFrames(Arc<dyn ExtraFrames>);

impl fmt::Debug for RegisteredExtraFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredExtraFrames").finish_non_exhaustive()
    }
}

/// Registers a code generator.
pub fn register_extra_frames(extra: Arc<dyn ExtraFrames>) -> RegisteredExtraFrames {
    REGISTERED.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&extra));
    RegisteredExtraFrames(extra)
}

impl Drop for RegisteredExtraFrames {
    fn drop(&mut self) {
        REGISTERED.write().unwrap_or_else(PoisonError::into_inner).retain(|extra| !Arc::ptr_eq(extra, &self.0));
    }
}

/// Returns whether any code generator is registered.
pub fn has_extra_frames() -> bool {
    !REGISTERED.read().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// Returns the original frames of a line of generated code, innermost first, from the first registered code
/// generator that knows the line.
pub fn frames_behind(filename: &str, line: u32) -> Vec<SourceLocation> {
    // Call without the lock, because generators may call anything, and register others.
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner).clone();
    registered
        .iter()
        .map(|extra| extra.frames_behind(filename, line))
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Generator(&'static str);

    impl ExtraFrames for Generator {
        fn frames_behind(&self, filename: &str, _line: u32) -> Vec<SourceLocation> {
            let known = filename == self.0;
            let frame = |name: &str| SourceLocation {
                name: name.into(),
                qualname: None,
                filename: "original.py".into(),
                first_line: None,
                position: stackweave_core::Position::default(),
            };
            if known { vec![frame("inner"), frame("outer")] } else { Vec::new() }
        }
    }

    #[test]
    fn a_generator_is_called_until_it_is_removed() {
        let (first, second) = (Arc::new(Generator("a.py")), Arc::new(Generator("b.py")));
        let (first, second) = (register_extra_frames(first), register_extra_frames(second));
        assert_eq!(frames_behind("b.py", 1).len(), 2);
        assert_eq!(frames_behind("c.py", 1), []);
        drop(second);
        assert_eq!(frames_behind("b.py", 1), []);
        assert_eq!(&*frames_behind("a.py", 1)[0].name, "inner");
        assert!(has_extra_frames());
        drop(first);
        assert!(!has_extra_frames());
    }
}
