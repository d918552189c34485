//! What each function has, itself and with all that it called.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{StackUsage, full_name, seen_frames};
use crate::Frame;

/// What a function has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionUsage {
    /// Its name, with the classes around it.
    pub name: Arc<str>,
    /// Its file, or its module.
    pub filename: Option<Arc<str>>,
    /// The line that it begins on, if that is known.
    pub line: Option<u32>,
    /// The bytes that it took itself.
    pub own: i64,
    /// The same with all that it called; once where it calls itself.
    pub total: i64,
    /// The blocks that it took itself.
    pub blocks: i64,
}

type Key = (Arc<str>, Option<Arc<str>>, Option<u32>);

/// Returns what each function has, those that have most themselves first. What has no stack is of `?`.
pub fn function_usage(stacks: &[StackUsage]) -> Vec<FunctionUsage> {
    let mut places: HashMap<Key, usize> = HashMap::new();
    let mut functions: Vec<FunctionUsage> = Vec::new();
    for stack in stacks {
        let mut keys: Vec<Key> = seen_frames(&stack.frames).map(|frame| key(frame)).collect();
        if keys.is_empty() {
            keys.push(("?".into(), None, None));
        }
        let mut counted = HashSet::new();
        for (depth, key) in keys.into_iter().enumerate() {
            let place = *places.entry(key).or_insert_with_key(|(name, filename, line)| {
                let (name, filename) = (Arc::clone(name), filename.clone());
                functions.push(FunctionUsage { name, filename, line: *line, own: 0, total: 0, blocks: 0 });
                functions.len() - 1
            });
            let function = &mut functions[place];
            if counted.insert(place) {
                function.total = function.total.saturating_add(stack.bytes);
            }
            if depth == 0 {
                function.own = function.own.saturating_add(stack.bytes);
                function.blocks = function.blocks.saturating_add(stack.blocks);
            }
        }
    }
    functions.sort_by_key(|function| Reverse((function.own, function.total)));
    functions
}

fn key(frame: &Frame) -> Key {
    let filename = frame.filename.as_ref().filter(|filename| !filename.is_empty());
    (Arc::clone(full_name(frame)), filename.or(frame.module.as_ref()).cloned(), frame.first_line)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{python, stacks};
    use super::*;

    fn figures(stacks: &[StackUsage]) -> Vec<(String, i64, i64, i64)> {
        let all = function_usage(stacks);
        all.iter().map(|one| (one.name.to_string(), one.own, one.total, one.blocks)).collect()
    }

    #[test]
    fn functions_have_what_they_take_themselves_and_with_others() {
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
