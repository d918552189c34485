//! Counts sub-interpreters: hooks only see the calls of the main interpreter.

use crate::interpreter::Interpreter;
use crate::memory::{copy_guarded, is_plausible};

/// Counting stops at this number.
const MAX_COUNTED: u64 = 10_000;

/// The other interpreters at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OtherInterpreters {
    alive: u64,
    /// The number of interpreters that were ever created, including the main one; `None` if that can't be read.
    created: Option<u64>,
}

impl OtherInterpreters {
    pub(crate) fn now(interpreter: &Interpreter) -> Self {
        let (newest, main) = interpreter.newest_and_main();
        Self { alive: count_alive(interpreter, newest, main), created: created(interpreter, newest, main) }
    }

    /// Returns how many other interpreters existed from that moment to now. If the number of created ones is unknown,
    /// interpreters that were created and ended in between are missing.
    pub(crate) fn until(&self, now: &Self) -> u64 {
        match self.created.zip(now.created) {
            Some((before, after)) => self.alive + after.saturating_sub(before),
            None => self.alive.max(now.alive),
        }
    }
}

/// Counts the interpreters before the main one: the list is ordered from new to old. One that is not under our GIL may
/// be freed meanwhile, so the kernel copies its words.
fn count_alive(interpreter: &Interpreter, newest: u64, main: u64) -> u64 {
    let next = interpreter.layout.lists.next_interpreter as u64;
    let (mut at, mut count) = (newest, 0);
    while at != main && count < MAX_COUNTED {
        let mut older = [0];
        count += 1;
        if !is_plausible(at) || !copy_guarded(at.wrapping_add(next), &mut older) || older[0] == at {
            break;
        }
        [at] = older;
    }
    count
}

/// Returns the id of the next interpreter: ids begin with 0, and are not reused. In all versions it follows the newest
/// and the main interpreter, and is used only if these two are as reported.
fn created(interpreter: &Interpreter, newest: u64, main: u64) -> Option<u64> {
    let runtime = interpreter.symbols.address(c"_PyRuntime")?.addr() as u64;
    let mut words = [0; 3];
    let is_read = copy_guarded(runtime + interpreter.layout.lists.interpreters as u64, &mut words);
    (is_read && words[..2] == [newest, main] && words[2] < u64::from(u32::MAX)).then_some(words[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_that_have_ended_are_counted_if_the_number_of_created_ones_is_known() {
        let at = |alive, created| OtherInterpreters { alive, created };
        assert_eq!(at(0, Some(1)).until(&at(0, Some(1))), 0);
        assert_eq!(at(0, Some(1)).until(&at(0, Some(3))), 2);
        assert_eq!(at(2, Some(5)).until(&at(1, Some(6))), 3);
        assert_eq!(at(1, None).until(&at(3, Some(9))), 3);
    }
}
