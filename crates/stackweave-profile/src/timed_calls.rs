//! Calls that a program has timed itself, by function, and by function and caller.
//!
//! The time of a caller's calls is counted like in `cProfile`: a call inside another such call is not counted again.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use crate::CallStatistics;

/// A call that has ended. The recorder chooses the numbers of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedCall {
    /// The function that was called.
    pub function: u32,
    /// The caller, if it is known.
    pub caller: Option<u32>,
    /// The time without callees.
    pub self_ns: i64,
    /// The time with callees.
    pub total_ns: i64,
    /// Whether no other call of the function was open.
    pub is_primitive: bool,
    /// Whether no other call of the function by the same caller was open.
    pub is_primitive_edge: bool,
}

/// Sums of calls. Functions and callers are in the order of their first call.
#[derive(Clone, Debug, Default)]
pub struct TimedCalls {
    functions: NumberedRows<TimedFunction>,
    calls: usize,
}

/// A function with its calls.
#[derive(Clone, Debug, Default)]
pub struct TimedFunction {
    cost: CallStatistics,
    callers: NumberedRows<CallStatistics>,
}

/// Values by number, in the order in which the numbers were added.
#[derive(Clone, Debug, Default)]
struct NumberedRows<Value> {
    indexes: HashMap<u32, usize>,
    rows: Vec<(u32, Value)>,
}

impl<Value: Default> NumberedRows<Value> {
    fn entry(&mut self, number: u32) -> &mut Value {
        let index = *self.indexes.entry(number).or_insert(self.rows.len());
        if index == self.rows.len() {
            self.rows.push((number, Value::default()));
        }
        &mut self.rows[index].1
    }
}

impl TimedCalls {
    /// Adds a call.
    pub fn add(&mut self, call: &TimedCall) {
        let row = self.functions.entry(call.function);
        add(&mut row.cost, call, call.is_primitive);
        if let Some(caller) = call.caller {
            add(row.callers.entry(caller), call, call.is_primitive_edge);
        }
        self.calls += 1;
    }

    /// Returns how many calls were added.
    pub const fn call_count(&self) -> usize {
        self.calls
    }

    /// Returns the functions.
    pub fn functions(&self) -> &[(u32, TimedFunction)] {
        &self.functions.rows
    }

    /// Returns the callers that have no calls themselves, some of them repeatedly.
    pub fn untimed_callers(&self) -> impl Iterator<Item = u32> {
        let callers = self.functions().iter().flat_map(|(_, row)| row.callers());
        callers.map(|(caller, _)| *caller).filter(|caller| !self.functions.indexes.contains_key(caller))
    }
}

impl TimedFunction {
    /// Returns the cost of all calls.
    pub const fn cost(&self) -> &CallStatistics {
        &self.cost
    }

    /// Returns the cost of the calls by each caller.
    pub fn callers(&self) -> &[(u32, CallStatistics)] {
        &self.callers.rows
    }
}

/// Equal sums have equal hashes, so a change of the hash shows a change of the sums.
impl Hash for TimedCalls {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let mut add = |number: u32, of: &CallStatistics| {
            (number, of.calls, of.primitive_calls, of.self_cost, of.total).hash(hasher);
        };
        for (function, row) in self.functions() {
            add(*function, &row.cost);
            row.callers().iter().for_each(|(caller, edge)| add(*caller, edge));
        }
    }
}

/// Returns whether a caller had called a function before, in a call that is still open. `stack` has for each open call,
/// the outermost first, whether it is of the caller, and whether it is of the function. If the stack of a recursion is
/// unknown, the result is true: a call that is counted twice can't be found later.
pub fn is_edge_open(stack: impl IntoIterator<Item = (bool, bool)>) -> bool {
    let mut was_caller = None;
    for (is_caller, is_function) in stack {
        if was_caller == Some(true) && is_function {
            return true;
        }
        was_caller = Some(is_caller);
    }
    was_caller.is_none()
}

fn add(cost: &mut CallStatistics, call: &TimedCall, is_primitive: bool) {
    cost.calls += 1;
    cost.self_cost = cost.self_cost.saturating_add(call.self_ns);
    cost.total_of_all = cost.total_of_all.saturating_add(call.total_ns);
    if is_primitive {
        cost.primitive_calls += 1;
        cost.total = cost.total.saturating_add(call.total_ns);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use super::*;

    const MAIN: u32 = 7;
    const FIB: u32 = 3;

    fn call(function: u32, caller: u32, [self_ns, total_ns]: [i64; 2], is_primitive: bool) -> TimedCall {
        TimedCall {
            function,
            caller: Some(caller),
            self_ns,
            total_ns,
            is_primitive,
            is_primitive_edge: is_primitive || caller == FIB && total_ns == 40,
        }
    }

    /// Builds `main` calling `fib`, which calls itself twice, nested.
    fn recursion() -> TimedCalls {
        let mut calls = TimedCalls::default();
        calls.add(&call(FIB, FIB, [30, 30], false));
        calls.add(&call(FIB, FIB, [10, 40], false));
        calls.add(&call(FIB, MAIN, [60, 100], true));
        calls
    }

    #[test]
    fn a_recursion_is_counted_once_in_its_function_and_once_in_each_caller() {
        let calls = recursion();
        assert_eq!((calls.call_count(), calls.functions().len()), (3, 1));
        let (function, row) = &calls.functions()[0];
        let statistics = |calls, primitive_calls, self_cost, total, total_of_all| CallStatistics {
            calls,
            primitive_calls,
            self_cost,
            total,
            total_of_all,
        };
        assert_eq!((*function, *row.cost()), (FIB, statistics(3, 1, 100, 100, 170)));
        let expected = [(FIB, statistics(2, 1, 40, 40, 70)), (MAIN, statistics(1, 1, 60, 100, 100))];
        assert_eq!(row.callers(), expected);
        assert_eq!(calls.untimed_callers().collect::<Vec<_>>(), [MAIN]);
    }

    #[test]
    fn an_edge_is_open_if_the_caller_is_directly_above_the_function() {
        let (caller, function, other) = ((true, false), (false, true), (false, false));
        assert!(is_edge_open([caller, function]));
        assert!(is_edge_open([other, caller, function, other]));
        assert!(!is_edge_open([function, caller]) && !is_edge_open([caller, other, function]));
        // For a recursive function, both are the same.
        assert!(is_edge_open([(true, true), (true, true)]) && !is_edge_open([(true, true)]));
        assert!(is_edge_open([]), "an unknown stack counts as open");
    }

    #[test]
    fn hashes_change_with_the_sums() {
        let hash = |calls: &TimedCalls| {
            let mut hasher = DefaultHasher::new();
            calls.hash(&mut hasher);
            hasher.finish()
        };
        let mut calls = recursion();
        assert_eq!(hash(&calls), hash(&recursion()));
        calls.add(&call(FIB, MAIN, [0, 0], true));
        assert_ne!(hash(&calls), hash(&recursion()));
    }

    #[test]
    fn times_do_not_overflow() {
        let mut calls = TimedCalls::default();
        (0..2).for_each(|_| calls.add(&call(FIB, MAIN, [i64::MAX; 2], true)));
        assert_eq!(calls.functions()[0].1.cost().total, i64::MAX);
    }
}
