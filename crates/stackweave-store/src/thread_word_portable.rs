//! A word for each thread: the twin of `thread_word_x86_64.rs` on other processors.

/// Makes a word that each thread has one of, 0 at first, and two functions, to get it and to set it. It neither has a
/// destructor nor is made lazily.
#[macro_export]
macro_rules! thread_word {
    ($visible:vis fn $get:ident, $set:ident, $symbol:literal) => {
        mod $get {
            ::std::thread_local! {
                pub(super) static WORD: ::core::cell::Cell<usize> = const { ::core::cell::Cell::new(0) };
            }
        }

        #[inline]
        $visible fn $get() -> usize {
            $get::WORD.with(::core::cell::Cell::get)
        }

        $visible fn $set(word: usize) {
            $get::WORD.with(|own| own.set(word));
        }
    };
}
