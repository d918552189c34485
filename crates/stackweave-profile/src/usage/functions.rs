//! The memory of each function, self and total.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{StackUsage, full_name, visible_frames};
use crate::Frame;

/// The memory of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionUsage {
    /// Its name, with the classes around it.
    pub name: Arc<str>,
    /// Its file, or the module of a native function.
    pub filename: Option<Arc<str>>,
    /// Its first line, if it is known.
    pub line: Option<u32>,
    /// The bytes of its own allocations.
    pub self_cost: i64,
    /// The bytes with callees; counted once under recursion.
    pub total: i64,
    /// The blocks of its own allocations.
    pub blocks: i64,
}

type UsageKey = (Arc<str>, Option<Arc<str>>, Option<u32>);

/// Returns the memory of each function, those with the most self bytes first. Memory without a stack belongs to `?`.
pub fn function_usage(stacks: &[StackUsage]) -> Vec<FunctionUsage> {
    let mut indexes: HashMap<UsageKey, usize> = HashMap::new();
    let mut functions: Vec<FunctionUsage> = Vec::new();
    for stack in stacks {
        let mut keys: Vec<UsageKey> = visible_frames(&stack.frames).map(|frame| key(frame)).collect();
        if keys.is_empty() {
            keys.push(("?".into(), None, None));
        }
        let mut counted = HashSet::new();
        for (depth, key) in keys.into_iter().enumerate() {
            let index = *indexes.entry(key).or_insert_with_key(|(name, filename, line)| {
                let (name, filename) = (Arc::clone(name), filename.clone());
                functions.push(FunctionUsage { name, filename, line: *line, self_cost: 0, total: 0, blocks: 0 });
                functions.len() - 1
            });
            let function = &mut functions[index];
            if counted.insert(index) {
                function.total = function.total.saturating_add(stack.bytes);
            }
            if depth == 0 {
                function.self_cost = function.self_cost.saturating_add(stack.bytes);
                function.blocks = function.blocks.saturating_add(stack.blocks);
            }
        }
    }
    functions.sort_by_key(|function| Reverse((function.self_cost, function.total)));
    functions
}

fn key(frame: &Frame) -> UsageKey {
    let filename = frame.filename.as_ref().filter(|filename| !filename.is_empty());
    (Arc::clone(full_name(frame)), filename.or(frame.module.as_ref()).cloned(), frame.first_line)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{python, stacks};
    use super::*;

    fn figures(stacks: &[StackUsage]) -> Vec<(String, i64, i64, i64)> {
        let all = function_usage(stacks);
        all.iter().map(|one| (one.name.to_string(), one.self_cost, one.total, one.blocks)).collect()
    }

    #[test]
    fn functions_have_self_and_total_bytes() {
        let expected = [
            ("inflate", 600, 600, 2),
            ("parse", 300, 900, 1),
            ("main", 50, 950, 1),
            ("?", 50, 50, 1),
            ("load", 0, 900, 0),
        ];
        assert_eq!(
            figures(&stacks()),
            expected.map(|(name, own, total, blocks)| (name.to_owned(), own, total, blocks))
        );
        let first = &function_usage(&stacks())[0];
        assert_eq!((first.filename.as_deref(), first.line), (Some("libz.so.1"), None));
    }

    #[test]
    fn a_recursion_counts_once() {
        let frames = vec![python("parse", 10, "a.py"), python("parse", 11, "a.py"), python("main", 1, "a.py")];
        let stack = StackUsage { frames, bytes: 100, blocks: 1 };
        assert_eq!(figures(&[stack]), [("parse".to_owned(), 100, 100, 1), ("main".to_owned(), 0, 100, 0)]);
    }
}
