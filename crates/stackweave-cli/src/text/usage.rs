//! Memory by stack, as the Python package prints it: tables of stacks, and call trees.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use stackweave_profile::usage::{StackUsage, UsageNode, UsageTree, collapsed_modules, visible_frames};
use stackweave_profile::{Frame, Measure};

use crate::text::short_name::shorten;
use crate::text::tree::float;
use crate::text::values::{percentage, share};

const WIDEST_NAME: usize = 44;
const INDENT: &str = "                               ";
/// Smaller shares of the total are left out of a tree.
const MIN_SHARE: f64 = 0.01;

/// The options of a table of stacks.
#[derive(Clone, Copy, Debug)]
pub struct UsageLines<'a> {
    /// The total, for shares.
    pub total: i64,
    /// The maximum number of stacks.
    pub limit: usize,
    /// The maximum number of frames of a stack.
    pub depth: usize,
    /// Files are relative to this folder.
    pub folder: Option<&'a Path>,
}

/// The text of a stack and its note: stacks with equal texts are one row.
type StackText<'a> = (Vec<String>, &'a str);

impl UsageLines<'_> {
    /// Returns the lines of the stacks with the most memory, each stack with its note.
    pub fn of(&self, rows: &[(StackUsage, String)]) -> Vec<String> {
        let merged = self.merged(rows);
        let mut lines = Vec::new();
        if !merged.is_empty() {
            lines.push(format!("{:>10} {:>7} {:>10}  allocated by", "bytes", "share", "blocks"));
        }
        for ((frames, notes), [bytes, blocks]) in merged.iter().take(self.limit) {
            let share = if self.total == 0 { String::new() } else { percentage(share(*bytes, self.total)) };
            let first = frames.first().map_or("no stack", |first| first);
            let blocks = Measure::Allocations.text(float(*blocks));
            lines.push(format!("{:>10} {share:>7} {blocks:>10}  {first}{notes}", size(*bytes)));
            let callers = frames.get(1..).unwrap_or_default();
            lines
                .extend(callers.iter().take(self.depth.saturating_sub(1)).map(|caller| format!("{INDENT}by {caller}")));
            if callers.len() >= self.depth {
                lines.push(format!("{INDENT}and {}", more(callers.len() + 1 - self.depth, "caller")));
            }
        }
        let rest = merged.get(self.limit..).unwrap_or_default();
        if !rest.is_empty() {
            let bytes = rest.iter().fold(0_i64, |sum, (_, [bytes, _])| sum.saturating_add(*bytes));
            lines.push(format!("{:>10} in {}", size(bytes), more(rest.len(), "stack")));
        }
        lines
    }

    fn merged<'a>(&self, rows: &'a [(StackUsage, String)]) -> Vec<(StackText<'a>, [i64; 2])> {
        let mut known: HashMap<StackText<'a>, usize> = HashMap::new();
        let mut merged: Vec<(StackText<'a>, [i64; 2])> = Vec::new();
        for (usage, notes) in rows {
            let frames = usage_frames(&usage.frames, self.folder);
            let at = *known.entry((frames, notes)).or_insert_with_key(|stack| {
                merged.push((stack.clone(), [0; 2]));
                merged.len() - 1
            });
            let sums = &mut merged[at].1;
            *sums = [sums[0].saturating_add(usage.bytes), sums[1].saturating_add(usage.blocks)];
        }
        merged.sort_by_key(|(_, sums)| Reverse(*sums));
        merged
    }
}

/// Returns the visible frames of a stack as text, without frames inside the interpreter and libraries.
pub fn usage_frames(stack: &[Arc<Frame>], folder: Option<&Path>) -> Vec<String> {
    collapsed_modules(visible_frames(stack)).into_iter().map(|frame| frame_text(frame, folder)).collect()
}

fn frame_text(frame: &Frame, folder: Option<&Path>) -> String {
    let name = frame.qualname.as_ref().filter(|name| !name.is_empty()).unwrap_or(&frame.name);
    let name = shorten(name, WIDEST_NAME);
    match (frame.filename.as_deref().filter(|file| !file.is_empty()), &frame.module) {
        (Some(file), _) => {
            let inside = folder.and_then(|folder| Path::new(file).strip_prefix(folder).ok()?.to_str());
            let line = frame.position.line.map_or_else(|| "?".to_owned(), |line| line.to_string());
            format!("{name}  {}:{line}", inside.unwrap_or(file))
        }
        (None, Some(module)) if !module.is_empty() => format!("{name}  [{module}]"),
        _ => name.into_owned(),
    }
}

/// Returns a line for each function of a tree with a share that is not negligible, below its caller.
pub fn usage_tree_text(tree: &UsageTree, at: usize, measure: &str) -> String {
    let top = &tree.nodes()[at];
    let least = float(top.total) * MIN_SHARE;
    let mut lines = vec![format!("{:>10}  {measure}", size(top.total))];
    let below = |node: &UsageNode, depth: usize| -> Vec<(usize, usize)> {
        node.children.iter().rev().map(|child| (*child, depth)).collect()
    };
    let mut left = below(top, 1);
    while let Some((at, depth)) = left.pop() {
        let node = &tree.nodes()[at];
        if float(node.total) < least {
            continue;
        }
        lines.push(format!("{:>10}  {:width$}{}", size(node.total), "", node_text(node), width = 2 * depth));
        left.extend(below(node, depth + 1));
    }
    lines.join("\n")
}

fn node_text(node: &UsageNode) -> String {
    let name = node.function().unwrap_or_default();
    let Some(frame) = &node.frame else { return name.to_owned() };
    match (frame.filename.as_deref().filter(|file| !file.is_empty()), &frame.module) {
        (Some(file), _) => {
            let line = frame.position.line.map_or_else(|| "None".to_owned(), |line| line.to_string());
            format!("{name}  {file}:{line}")
        }
        (None, Some(module)) if !module.is_empty() => format!("{name}  [{module}]"),
        _ => name.to_owned(),
    }
}

fn size(bytes: i64) -> String {
    Measure::LiveBytes.text(float(bytes))
}

/// Formats `1 more caller`, `2,000 more callers`.
fn more(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} more {noun}{ending}", Measure::Allocations.text(float(i64::try_from(number).unwrap_or(i64::MAX))))
}

#[cfg(test)]
mod tests {
    use stackweave_profile::FrameKind;

    use super::*;

    fn frame(
        kind: FrameKind,
        name: &str,
        (filename, line): (Option<&str>, Option<u32>),
        module: Option<&str>,
    ) -> Arc<Frame> {
        Arc::new(Frame {
            kind,
            name: name.into(),
            qualname: None,
            filename: filename.map(Into::into),
            first_line: None,
            position: stackweave_core::Position { line, ..stackweave_core::Position::default() },
            module: module.map(Into::into),
            is_inlined: false,
            address: None,
            is_own: false,
        })
    }

    fn python(name: &str, line: u32) -> Arc<Frame> {
        frame(FrameKind::Python, name, (Some("/srv/app/app.py"), Some(line)), None)
    }

    fn rows() -> Vec<(StackUsage, String)> {
        let inflate = frame(FrameKind::Native, "inflate", (None, None), Some("libz.so.1"));
        let [main, load, parse] = [("main", 30), ("load", 20), ("parse", 10)].map(|(name, line)| python(name, line));
        let row = |frames: &[&Arc<Frame>], bytes, blocks, notes: &str| {
            let frames = frames.iter().map(|frame| Arc::clone(frame)).collect();
            (StackUsage { frames, bytes, blocks }, notes.to_owned())
        };
        vec![
            row(&[&inflate, &parse, &load, &main], 600, 2, ""),
            row(&[&main], 40, 1, "  (calloc)"),
            row(&[], 50, 1, ""),
            row(&[&main], 60, 1000, "  (calloc)"),
        ]
    }

    #[test]
    fn the_table_starts_with_the_stack_with_the_most_memory() {
        let table = UsageLines { total: 750, limit: 2, depth: 3, folder: Some(Path::new("/srv/app")) };
        let expected = [
            "     bytes   share     blocks  allocated by",
            "     600 B   80.0%          2  inflate  [libz.so.1]",
            "                               by parse  app.py:10",
            "                               by load  app.py:20",
            "                               and 1 more caller",
            "     100 B   13.3%      1,001  main  app.py:30  (calloc)",
            "      50 B in 1 more stack",
        ];
        assert_eq!(table.of(&rows()), expected);
        assert!(table.of(&[]).is_empty());
    }

    #[test]
    fn the_tree_has_one_line_per_function() {
        let rows: Vec<StackUsage> = rows().into_iter().map(|(usage, _)| usage).collect();
        let expected = "     750 B  peak
     700 B    main  /srv/app/app.py:30
     600 B      load  /srv/app/app.py:20
     600 B        parse  /srv/app/app.py:10
     600 B          inflate  [libz.so.1]";
        assert_eq!(usage_tree_text(&UsageTree::of(&rows, false), 0, "peak"), expected);
    }
}
