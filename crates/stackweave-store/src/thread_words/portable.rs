//! The words of threads on platforms other than Linux on x86-64, with the functions of `static_tls.rs`.

use super::{NoThreadWords, ThreadWords, dynamic};

#[inline]
pub(super) fn get<const INDEX: usize>() -> usize {
    dynamic::get(INDEX)
}

#[inline]
pub(super) fn set<const INDEX: usize>(word: usize) {
    dynamic::set(INDEX, word);
}

pub(super) fn thread_words() -> Result<ThreadWords, NoThreadWords> {
    Err(NoThreadWords("this platform is not supported".into()))
}
