//! How many other interpreters there are and were: hooks see the calls of the main interpreter only.

use crate::interpreter::Interpreter;
use crate::memory::{copy_guarded, is_plausible};

/// More than this are not counted one by one.
const MOST: u64 = 10_000;

/// The other interpreters at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OtherInterpreters {
    alive: u64,
    /// How many interpreters were ever made, the main one among them; `None` if that can't be read.
    made: Option<u64>,
}

impl OtherInterpreters {
    pub(crate) fn now(interpreter: &Interpreter) -> Self {
        let (newest, main) = interpreter.newest_and_main();
        Self { alive: count_alive(interpreter, newest, main), made: made(interpreter, newest, main) }
    }

    /// Returns how many there have been from that moment to now. Without the number of those that were made, one that has come and
    /// gone is not seen.
    pub(crate) fn until(&self, now: &Self) -> u64 {
        match self.made.zip(now.made) {
            Some((before, after)) => self.alive + after.saturating_sub(before),
            None => self.alive.max(now.alive),
        }
    }
}

/// Newer interpreters come before older ones. One that is not under our GIL may go away while it is looked at, so the kernel reads.
fn count_alive(interpreter: &Interpreter, newest: u64, main: u64) -> u64 {
    let next = interpreter.layout.lists.next_interpreter as u64;
    let (mut at, mut count) = (newest, 0);
    while at != main && count < MOST {
        let mut older = [0];
        count += 1;
        if !is_plausible(at) || !copy_guarded(at.wrapping_add(next), &mut older) || older[0] == at {
            break;
        }
        [at] = older;
    }
    count
}

/// The number of the next interpreter: numbers begin with 0, and are not used again. It stands behind the newest and the main
/// interpreter in all versions, and is believed where those two are what the interpreter says.
fn made(interpreter: &Interpreter, newest: u64, main: u64) -> Option<u64> {
    let runtime = interpreter.symbols.address(c"_PyRuntime")?.addr() as u64;
    let mut words = [0; 3];
    let is_read = copy_guarded(runtime + interpreter.layout.lists.interpreters as u64, &mut words);
    (is_read && words[..2] == [newest, main] && words[2] < u64::from(u32::MAX)).then_some(words[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_came_and_went_are_counted_if_the_number_is_known() {
        let at = |alive, made| OtherInterpreters { alive, made };
        assert_eq!(at(0, Some(1)).until(&at(0, Some(1))), 0);
        assert_eq!(at(0, Some(1)).until(&at(0, Some(3))), 2);
        assert_eq!(at(2, Some(5)).until(&at(1, Some(6))), 3);
        assert_eq!(at(1, None).until(&at(3, Some(9))), 3);
    }
}
