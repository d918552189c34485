//! What a thread has open, by the rules for begins, ends and opens.
//!
//! An *open* says that something is open and how many are open around it. It may be told again and again: what is known
//! to be open stays as it is. The last of several that follow each other, each deeper than the one before, is the innermost
//! of all: what is open beyond it has ended, and nobody saw its end. So a thread that tells all that it has open, the outermost first, puts right
//! whatever a reader has missed.

use core::ops::{Deref, DerefMut};

/// What a thread has open, outermost first. It may be known that something is open, and not what.
#[derive(Clone, Debug)]
pub struct OpenStack<T> {
    known: Vec<T>,
    /// Where there are some that nobody knows, in the order of places.
    gaps: Vec<Gap>,
    /// How many are open by the opens that came last; `None` if something else came last.
    told: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Gap {
    /// The place of the known one behind it.
    place: usize,
    /// How many are unknown in it and in all gaps before it.
    unknown: u64,
}

/// What an end has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<T> {
    /// This.
    Known(T),
    /// Something that was known to be open, but not what.
    Unknown,
    /// Nothing was open.
    Nothing,
}

impl<T> Default for OpenStack<T> {
    fn default() -> Self {
        Self { known: Vec::new(), gaps: Vec::new(), told: None }
    }
}

impl<T> OpenStack<T> {
    /// Something begins.
    #[inline]
    pub fn begin(&mut self, what: T) {
        self.known.push(what);
    }

    /// What began last ends.
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
        self.gaps.last().is_some_and(|gap| gap.place == self.known.len())
    }

    fn shorten_last_gap(&mut self, by: u64) {
        let before = self.gaps.len().checked_sub(2).map_or(0, |place| self.gaps[place].unknown);
        if let Some(gap) = self.gaps.last_mut() {
            gap.unknown = gap.unknown.saturating_sub(by).max(before);
            if gap.unknown == before {
                self.gaps.pop();
            }
        }
    }

    /// Something is open, with so many around it. Whether it has to be begun, since it is not known to be open: then what
    /// [`OpenStack::take_beyond`] gives ends, and [`OpenStack::begin_open`] follows.
    pub fn open(&mut self, depth: u64, is_it: impl FnOnce(&T) -> bool) -> bool {
        self.told = Some(depth.saturating_add(1));
        if self.place_of(depth).and_then(|place| self.known.get(place)).is_some_and(is_it) {
            return false;
        }
        self.told = Some(depth);
        true
    }

    /// Begins what is open with so many around it, once nothing is open beyond these.
    pub fn begin_open(&mut self, depth: u64, what: T) {
        let (open, unknown) = (self.depth(), self.unknown());
        if depth > open {
            let unknown = unknown.saturating_add(depth - open);
            if self.has_unknown_innermost() {
                self.gaps.pop();
            }
            self.gaps.push(Gap { place: self.known.len(), unknown });
        }
        self.known.push(what);
        self.told = Some(depth.saturating_add(1));
    }

    /// Nothing is open from this depth on.
    pub fn open_nothing(&mut self, depth: u64) {
        self.told = Some(depth);
    }

    /// Whether an open with so many around it goes on with what the opens before have told.
    pub fn goes_on(&self, depth: u64) -> bool {
        self.told.is_some_and(|told| depth >= told)
    }

    /// Whether the last thing that was told is an open.
    #[inline]
    pub fn was_told(&self) -> bool {
        self.told.is_some()
    }

    /// Takes out the innermost of what is open beyond what the opens have told. `None` once there is nothing; from then on
    /// the opens that came last are forgotten.
    pub fn take_beyond(&mut self) -> Option<T> {
        let told = self.told?;
        loop {
            let depth = self.depth();
            if depth <= told {
                self.told = None;
                return None;
            }
            if !self.has_unknown_innermost() {
                return self.known.pop();
            }
            self.shorten_last_gap(depth - told);
        }
    }

    /// Takes out the innermost that is known, and forgets what is not known beyond it.
    pub fn take_innermost(&mut self) -> Option<T> {
        self.told = None;
        while self.has_unknown_innermost() {
            self.gaps.pop();
        }
        self.known.pop()
    }

    /// What is known to be open, outermost first, each with how many are open around it.
    pub fn with_depths(&self) -> impl Iterator<Item = (u64, &T)> {
        let mut gaps = self.gaps.iter().peekable();
        let mut before = 0;
        self.known.iter().enumerate().map(move |(place, known)| {
            while let Some(gap) = gaps.next_if(|gap| gap.place <= place) {
                before = gap.unknown;
            }
            (before.saturating_add(place as u64), known)
        })
    }

    /// How many are open.
    pub fn depth(&self) -> u64 {
        self.unknown().saturating_add(self.known.len() as u64)
    }

    fn unknown(&self) -> u64 {
        self.gaps.last().map_or(0, |gap| gap.unknown)
    }

    /// The place of the known one at this depth; `None` if it is one that nobody knows. Places behind all are nobody's.
    fn place_of(&self, depth: u64) -> Option<usize> {
        let end = |gap: &Gap| gap.unknown.saturating_add(gap.place as u64);
        let behind = self.gaps.partition_point(|gap| end(gap) <= depth);
        let before = behind.checked_sub(1).map_or(0, |place| self.gaps[place].unknown);
        let place = usize::try_from(depth - before).ok()?;
        let is_before_next = self.gaps.get(behind).is_none_or(|next| place < next.place);
        is_before_next.then_some(place)
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

    /// Tells an open, and says what ended by it.
    fn open(stack: &mut OpenStack<char>, depth: u64, what: char) -> String {
        let mut ended = String::new();
        if !stack.goes_on(depth) {
            ended.extend(core::iter::from_fn(|| stack.take_beyond()));
        }
        if stack.open(depth, |known| *known == what) {
            ended.extend(core::iter::from_fn(|| stack.take_beyond()));
            stack.begin_open(depth, what);
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
    fn what_is_told_again_changes_nothing() {
        let mut stack = OpenStack::default();
        "abc".chars().for_each(|what| stack.begin(what));
        for _ in 0..2 {
            let ended: Vec<String> =
                (0..).zip("abc".chars()).map(|(depth, what)| open(&mut stack, depth, what)).collect();
            assert_eq!(
                (ended.concat(), settle(&mut stack), shown(&stack)),
                (String::new(), String::new(), "abc".into())
            );
        }
    }

    #[test]
    fn what_lies_beyond_the_last_one_told_has_ended() {
        let mut stack = OpenStack::default();
        "abcde".chars().for_each(|what| stack.begin(what));
        assert_eq!(open(&mut stack, 0, 'a') + &open(&mut stack, 1, 'b'), "");
        assert_eq!((settle(&mut stack), shown(&stack)), ("edc".into(), "ab".into()));
        assert_eq!((open(&mut stack, 0, 'x'), shown(&stack)), ("ba".into(), "x".into()));
        stack.open_nothing(0);
        assert_eq!((settle(&mut stack), stack.depth(), stack.end()), ("x".into(), 0, Nothing));
    }

    #[test]
    fn what_is_not_known_is_counted() {
        let mut stack = OpenStack::default();
        assert_eq!(open(&mut stack, 2, 'c') + &open(&mut stack, 5, 'f'), "");
        assert_eq!((settle(&mut stack), stack.depth()), (String::new(), 6));
        let ended: Vec<_> = (0..7).map(|_| stack.end()).collect();
        assert_eq!(ended, [Known('f'), Unknown, Unknown, Known('c'), Unknown, Unknown, Nothing]);
        open(&mut stack, u64::MAX, 'z');
        assert_eq!((stack.depth(), stack.take_innermost(), stack.take_innermost()), (u64::MAX, Some('z'), None));
        assert_eq!(stack.depth(), 0);
    }

    /// A stack that says of everything whether it is known.
    #[derive(Default)]
    struct Model(Vec<Option<char>>);

    impl Model {
        fn known(&self) -> String {
            self.0.iter().flatten().collect()
        }

        fn cut(&mut self, depth: usize) {
            self.0.truncate(depth);
        }

        fn open(&mut self, depth: usize, what: char) {
            if self.0.get(depth) != Some(&Some(what)) {
                self.cut(depth);
                self.0.resize(depth, None);
                self.0.push(Some(what));
            }
        }
    }

    #[test]
    fn it_does_what_a_plain_stack_with_unknowns_does() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let (mut stack, mut model) = (OpenStack::default(), Model::default());
            for step in 0..400 {
                let what = char::from(b'a' + random.byte_below(3));
                match random.below(5) {
                    0 | 1 => {
                        stack.begin(what);
                        model.0.push(Some(what));
                    }
                    2 => {
                        let expected = model.0.pop().map_or(Nothing, |top| top.map_or(Unknown, Known));
                        assert_eq!(stack.end(), expected, "seed {seed}, step {step}");
                    }
                    3 => {
                        let mut depth = random.below(model.0.len() + 3);
                        for _ in 0..=random.below(3) {
                            open(&mut stack, depth as u64, what);
                            model.open(depth, what);
                            depth += 1 + random.below(2);
                        }
                        let told = usize::try_from(stack.told.unwrap()).unwrap();
                        settle(&mut stack);
                        model.cut(told);
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
