//! One line for each stack: its functions, outermost first, and what it cost itself.

use std::io::Write;

use stackweave_profile::{Function, NodeId, Profile};

use crate::error::ExportError;
use crate::source::Source;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let profile = source.profile()?;
    let tree = profile.tree();
    let mut paths: Vec<String> = vec![String::new(); tree.nodes().len()];
    for (id, node) in tree.iter() {
        let name = name(profile.functions().function_of(node.frame));
        let above = &paths[node.parent.index()];
        let path = if above.is_empty() { name } else { format!("{above};{name}") };
        if node.cost.own > 0 {
            writeln!(out, "{path} {}", node.cost.own)?;
        }
        paths[id.index()] = path;
    }
    write_rest(&profile, out)
}

/// What belongs to no function.
fn write_rest(profile: &Profile, out: &mut dyn Write) -> Result<(), ExportError> {
    match profile.tree().node(NodeId::ROOT).cost.own {
        own if own > 0 => Ok(writeln!(out, "(unknown) {own}")?),
        _ => Ok(()),
    }
}

/// A name that keeps to its place: no separator, no line's end.
fn name(function: &Function) -> String {
    let place = function.filename.as_deref().or_else(|| function.module_name().map(|name| &**name));
    let name = match place {
        Some(place) => format!("{} ({})", function.full_name(), place.rsplit('/').next().unwrap_or(place)),
        None => function.full_name().to_string(),
    };
    name.replace(';', ":").replace(['\n', '\r'], " ")
}
