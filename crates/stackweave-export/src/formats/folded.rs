//! Folded stacks: one line for each stack with its functions, outermost first, and its self cost.

use std::io::Write;

use stackweave_profile::{Function, NodeId, Profile, ProfileFrame};

use crate::error::ExportError;
use crate::source::Source;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let profile = source.profile()?;
    let name = |frame: &ProfileFrame| name(profile.functions().function(frame.function), frame.line);
    let names: Vec<String> = profile.functions().frames().iter().map(name).collect();
    let children = profile.tree().children();
    let mut path = String::new();
    // Nodes that are not written yet, with the length of their callers' part of the path.
    let mut waiting: Vec<(NodeId, usize)> = Vec::new();
    let below = |node: NodeId, length: usize, waiting: &mut Vec<(NodeId, usize)>| {
        waiting.extend(children.get(node).iter().rev().map(|child| (*child, length)));
    };
    below(NodeId::ROOT, 0, &mut waiting);
    while let Some((id, callers)) = waiting.pop() {
        let node = profile.tree().node(id);
        path.truncate(callers);
        if callers > 0 {
            path.push(';');
        }
        path.push_str(&names[node.frame.index()]);
        if node.cost.self_cost > 0 {
            writeln!(out, "{path} {}", node.cost.self_cost)?;
        }
        below(id, path.len(), &mut waiting);
    }
    write_rest(&profile, out)
}

/// Writes the cost outside all functions.
fn write_rest(profile: &Profile, out: &mut dyn Write) -> Result<(), ExportError> {
    match profile.without_frame() {
        self_cost if self_cost > 0 => Ok(writeln!(out, "(unknown) {self_cost}")?),
        _ => Ok(()),
    }
}

/// Returns the name of a function with its file or module, and the line if lines are separate.
fn name(function: &Function, line: Option<u32>) -> String {
    let location = function.filename.as_deref().or_else(|| function.module_name().map(|name| &**name));
    let file = location.map(|location| location.rsplit('/').next().unwrap_or(location));
    let name = function.full_name();
    sanitized(&match (file, line) {
        (Some(file), Some(line)) => format!("{name} ({file}:{line})"),
        (Some(file), None) => format!("{name} ({file})"),
        (None, Some(line)) => format!("{name} ({line})"),
        (None, None) => name.to_string(),
    })
}

/// Removes separators and line breaks from a name. Readers take a number after a space at the end for a cost, and two
/// numbers for the costs of two profiles, so such a name is changed.
fn sanitized(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|letter| match letter {
            ';' => ':',
            control if control.is_control() => ' ',
            letter => letter,
        })
        .collect();
    let mut plain = plain.trim().to_owned();
    let number = plain.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if number.len() < plain.len() && number.ends_with(char::is_whitespace) {
        let end = plain.split_off(number.trim_end().len());
        plain.push('_');
        plain.push_str(end.trim_start());
    }
    if plain.is_empty() { "(empty)".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::sanitized;

    #[test]
    fn names_can_not_be_confused_with_separators_and_costs() {
        for (name, expected) in [
            ("f (a.py)", "f (a.py)"),
            ("a;b", "a:b"),
            ("a\nb\r\0c", "a b  c"),
            (" \t ", "(empty)"),
            ("epoch 12", "epoch_12"),
            ("took  1.5 ", "took_1.5"),
            ("12", "12"),
            ("epoch 1 2", "epoch 1_2"),
            ("f12", "f12"),
        ] {
            assert_eq!(sanitized(name), expected);
        }
    }
}
