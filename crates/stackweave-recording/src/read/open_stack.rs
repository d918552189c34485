//! The open spans of a thread, by the rules for starts, ends and opens.
//!
//! An *open* states that a span is open, and its depth. It may be repeated: a span that is known to be open stays as it is. In a
//! run of opens with increasing depths, the last one is the innermost open span: deeper spans have ended, although their ends are
//! missing. So when a thread records all its open spans again, outermost first, a reader is correct again, whatever it has
//! missed.

use core::ops::{Deref, DerefMut};

/// The open spans of a thread, outermost first. Some may be unknown.
#[derive(Clone, Debug)]
pub struct OpenStack<T> {
    known: Vec<T>,
    /// The unknown spans between known ones, in the order of their positions.
    gaps: Vec<Gap>,
    /// The number of open spans according to the last run of opens; `None` if another event came last.
    recorded_depth: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Gap {
    /// The index of the known span after it.
    before: usize,
    /// The number of unknown spans in this gap and in all gaps before it.
    unknown: u64,
}

/// The span that an end has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<T> {
    /// A known span.
    Known(T),
    /// An unknown span.
    Unknown,
    /// No span was open.
    Nothing,
}

impl<T> Default for OpenStack<T> {
    fn default() -> Self {
        Self { known: Vec::new(), gaps: Vec::new(), recorded_depth: None }
    }
}

impl<T> OpenStack<T> {
    /// Begins a span.
    #[inline]
    pub fn begin(&mut self, span: T) {
        self.known.push(span);
    }

    /// Ends the innermost span.
    #[inline]
    pub fn end(&mut self) -> Ended<T> {
        if self.gaps.is_empty() {
            return self.known.pop().map_or(Ended::Nothing, Ended::Known);
        }
        self.end_with_gaps()
    }

    #[cold]
    fn end_with_gaps(&mut self) -> Ended<T> {
        if self.has_unknown_innermost() {
            self.shorten_last_gap(1);
            return Ended::Unknown;
        }
        self.known.pop().map_or(Ended::Nothing, Ended::Known)
    }

    fn has_unknown_innermost(&self) -> bool {
        self.gaps.last().is_some_and(|gap| gap.before == self.known.len())
    }

    fn shorten_last_gap(&mut self, by: u64) {
        let before = self.gaps.len().checked_sub(2).map_or(0, |index| self.gaps[index].unknown);
        if let Some(gap) = self.gaps.last_mut() {
            gap.unknown = gap.unknown.saturating_sub(by).max(before);
            if gap.unknown == before {
                self.gaps.pop();
            }
        }
    }

    /// Handles an open of a span at this depth. Returns whether the span must be begun, because it is not known to be open: then
    /// the caller ends what [`OpenStack::take_beyond`] returns, and calls [`OpenStack::begin_open`].
    pub fn open(&mut self, depth: u64, is_it: impl FnOnce(&T) -> bool) -> bool {
        self.recorded_depth = Some(depth.saturating_add(1));
        if self.index_of(depth).and_then(|index| self.known.get(index)).is_some_and(is_it) {
            return false;
        }
        self.recorded_depth = Some(depth);
        true
    }

    /// Begins an open span at this depth, after the deeper ones have ended.
    pub fn begin_open(&mut self, depth: u64, span: T) {
        let (open, unknown) = (self.depth(), self.unknown());
        if depth > open {
            let unknown = unknown.saturating_add(depth - open);
            if self.has_unknown_innermost() {
                self.gaps.pop();
            }
            self.gaps.push(Gap { before: self.known.len(), unknown });
        }
        self.known.push(span);
        self.recorded_depth = Some(depth.saturating_add(1));
    }

    /// Handles an open without a span: no span is open at this depth or deeper.
    pub fn open_nothing(&mut self, depth: u64) {
        self.recorded_depth = Some(depth);
    }

    /// Returns whether an open at this depth continues the current run of opens.
    pub fn goes_on(&self, depth: u64) -> bool {
        self.recorded_depth.is_some_and(|recorded| depth >= recorded)
    }

    /// Returns whether the last event was an open.
    #[inline]
    pub fn was_recorded_open(&self) -> bool {
        self.recorded_depth.is_some()
    }

    /// Removes the innermost known span that is deeper than the last open. Returns `None` if there is none, which ends the run of
    /// opens.
    pub fn take_beyond(&mut self) -> Option<T> {
        let recorded = self.recorded_depth?;
        loop {
            let depth = self.depth();
            if depth <= recorded {
                self.recorded_depth = None;
                return None;
            }
            if !self.has_unknown_innermost() {
                return self.known.pop();
            }
            self.shorten_last_gap(depth - recorded);
        }
    }

    /// Removes the innermost known span, and the unknown ones inside it.
    pub fn take_innermost(&mut self) -> Option<T> {
        self.recorded_depth = None;
        while self.has_unknown_innermost() {
            self.gaps.pop();
        }
        self.known.pop()
    }

    /// Returns the known open spans, outermost first, with their depths.
    pub fn with_depths(&self) -> impl Iterator<Item = (u64, &T)> {
        let mut gaps = self.gaps.iter().peekable();
        let mut before = 0;
        self.known.iter().enumerate().map(move |(index, known)| {
            while let Some(gap) = gaps.next_if(|gap| gap.before <= index) {
                before = gap.unknown;
            }
            (before.saturating_add(index as u64), known)
        })
    }

    /// Returns the number of open spans.
    pub fn depth(&self) -> u64 {
        self.unknown().saturating_add(self.known.len() as u64)
    }

    fn unknown(&self) -> u64 {
        self.gaps.last().map_or(0, |gap| gap.unknown)
    }

    /// Returns the index of the known span at this depth; `None` for an unknown one. The index may be beyond the last span.
    fn index_of(&self, depth: u64) -> Option<usize> {
        let end = |gap: &Gap| gap.unknown.saturating_add(gap.before as u64);
        let behind = self.gaps.partition_point(|gap| end(gap) <= depth);
        let before = behind.checked_sub(1).map_or(0, |index| self.gaps[index].unknown);
        let index = usize::try_from(depth - before).ok()?;
        let is_before_next = self.gaps.get(behind).is_none_or(|next| index < next.before);
        is_before_next.then_some(index)
    }
}

impl<T> Deref for OpenStack<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.known
    }
}

impl<T> DerefMut for OpenStack<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.known
    }
}

#[cfg(test)]
mod tests {
    use super::Ended::{Known, Nothing, Unknown};
    use super::*;
    use stackweave_testkit::random::Random;

    /// Handles an open, and returns the spans that it ended.
    fn open(stack: &mut OpenStack<char>, depth: u64, span: char) -> String {
        let mut ended = String::new();
        if !stack.goes_on(depth) {
            ended.extend(core::iter::from_fn(|| stack.take_beyond()));
        }
        if stack.open(depth, |known| *known == span) {
            ended.extend(core::iter::from_fn(|| stack.take_beyond()));
            stack.begin_open(depth, span);
        }
        ended
    }

    fn settle(stack: &mut OpenStack<char>) -> String {
        core::iter::from_fn(|| stack.take_beyond()).collect()
    }

    fn shown(stack: &OpenStack<char>) -> String {
        stack.iter().collect()
    }

    #[test]
    fn repeated_opens_change_nothing() {
        let mut stack = OpenStack::default();
        "abc".chars().for_each(|span| stack.begin(span));
        for _ in 0..2 {
            let ended: Vec<String> =
                (0..).zip("abc".chars()).map(|(depth, span)| open(&mut stack, depth, span)).collect();
            assert_eq!(
                (ended.concat(), settle(&mut stack), shown(&stack)),
                (String::new(), String::new(), "abc".into())
            );
        }
    }

    #[test]
    fn spans_beyond_the_last_open_have_ended() {
        let mut stack = OpenStack::default();
        "abcde".chars().for_each(|span| stack.begin(span));
        assert_eq!(open(&mut stack, 0, 'a') + &open(&mut stack, 1, 'b'), "");
        assert_eq!((settle(&mut stack), shown(&stack)), ("edc".into(), "ab".into()));
        assert_eq!((open(&mut stack, 0, 'x'), shown(&stack)), ("ba".into(), "x".into()));
        stack.open_nothing(0);
        assert_eq!((settle(&mut stack), stack.depth(), stack.end()), ("x".into(), 0, Nothing));
    }

    #[test]
    fn unknown_spans_are_counted() {
        let mut stack = OpenStack::default();
        assert_eq!(open(&mut stack, 2, 'c') + &open(&mut stack, 5, 'f'), "");
        assert_eq!((settle(&mut stack), stack.depth()), (String::new(), 6));
        let ended: Vec<_> = (0..7).map(|_| stack.end()).collect();
        assert_eq!(ended, [Known('f'), Unknown, Unknown, Known('c'), Unknown, Unknown, Nothing]);
        open(&mut stack, u64::MAX, 'z');
        assert_eq!((stack.depth(), stack.take_innermost(), stack.take_innermost()), (u64::MAX, Some('z'), None));
        assert_eq!(stack.depth(), 0);
    }

    /// A stack with an explicit element for each unknown span.
    #[derive(Default)]
    struct StackModel(Vec<Option<char>>);

    impl StackModel {
        fn known(&self) -> String {
            self.0.iter().flatten().collect()
        }

        fn cut(&mut self, depth: usize) {
            self.0.truncate(depth);
        }

        fn open(&mut self, depth: usize, span: char) {
            if self.0.get(depth) != Some(&Some(span)) {
                self.cut(depth);
                self.0.resize(depth, None);
                self.0.push(Some(span));
            }
        }
    }

    #[test]
    fn it_agrees_with_a_plain_stack_with_unknown_spans() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let (mut stack, mut model) = (OpenStack::default(), StackModel::default());
            for step in 0..400 {
                let span = char::from(b'a' + random.byte_below(3));
                match random.below(5) {
                    0 | 1 => {
                        stack.begin(span);
                        model.0.push(Some(span));
                    }
                    2 => {
                        let expected = model.0.pop().map_or(Nothing, |top| top.map_or(Unknown, Known));
                        assert_eq!(stack.end(), expected, "seed {seed}, step {step}");
                    }
                    3 => {
                        let mut depth = random.below(model.0.len() + 3);
                        for _ in 0..=random.below(3) {
                            open(&mut stack, depth as u64, span);
                            model.open(depth, span);
                            depth += 1 + random.below(2);
                        }
                        let recorded = usize::try_from(stack.recorded_depth.unwrap()).unwrap();
                        settle(&mut stack);
                        model.cut(recorded);
                    }
                    _ => {
                        let depth = random.below(model.0.len() + 2);
                        stack.open_nothing(depth as u64);
                        settle(&mut stack);
                        model.cut(depth);
                    }
                }
                assert_eq!(
                    (shown(&stack), stack.depth()),
                    (model.known(), model.0.len() as u64),
                    "seed {seed}, step {step}"
                );
            }
        }
    }
}
