//! Chooses how Python frames are read: directly if that can be trusted, else by the public API.

use crate::frame::{PythonFrame, WalkResult};
use crate::interpreter::Interpreter;
use crate::public_api::PublicApi;
use crate::self_test::self_test;
use crate::unavailable::Unavailable;

/// Reads the frames of the current thread, in the best way that this interpreter allows.
#[derive(Clone, Copy, Debug)]
pub enum FrameReader {
    /// Reads the interpreter's own structures, without the GIL.
    Direct(&'static Interpreter),
    /// Calls the public API, which needs the GIL, because a direct walk is not possible for this reason.
    PublicApi(&'static PublicApi, Unavailable),
}

impl FrameReader {
    /// Finds the interpreter and tests the direct walk. Call it once, at import, with the GIL held and no exception
    /// set. Fails only if there is no interpreter.
    pub fn choose() -> Result<Self, Unavailable> {
        match Interpreter::find().and_then(|interpreter| self_test(interpreter).map(|()| interpreter)) {
            Ok(interpreter) => Ok(Self::Direct(interpreter)),
            Err(reason) => Ok(Self::PublicApi(PublicApi::find()?, reason)),
        }
    }

    /// Returns why the public API is used; `None` for the direct walk.
    pub fn fallback_reason(&self) -> Option<Unavailable> {
        match self {
            Self::Direct(_) => None,
            Self::PublicApi(_, reason) => Some(*reason),
        }
    }

    /// Walks this thread's frames, innermost first. The length of `frames` is the depth limit.
    #[inline]
    pub fn walk(&self, frames: &mut [PythonFrame]) -> WalkResult {
        match self {
            Self::Direct(interpreter) => interpreter.walk(frames),
            Self::PublicApi(api, _) => api.walk(frames),
        }
    }
}
