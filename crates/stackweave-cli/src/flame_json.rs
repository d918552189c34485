//! A flame graph as JSON, in the nested form that d3-flame-graph reads.

use std::io::{self, Write};

use serde_json::json;
use stackweave_profile::Hidden;

use crate::json_tree::{Nested, write_nested};
use crate::json_values::{hidden_with, raw_unit, text};
use crate::text::FlameTree;

/// Readers of JSON limit the nesting: Python's to about 990. Each level nests twice.
pub(crate) const MOST_LEVELS: usize = 400;

/// Writes `name`, `value` and `children` of each box. Costs are integers, in the unit of `unit`.
pub(crate) fn write(out: &mut dyn Write, tree: &FlameTree, hidden: Hidden, remarks: &[String]) -> io::Result<()> {
    write_nested(out, &Boxes { tree, hidden, remarks }, 0)?;
    writeln!(out)
}

struct Boxes<'a> {
    tree: &'a FlameTree,
    hidden: Hidden,
    remarks: &'a [String],
}

impl Nested for Boxes<'_> {
    fn children(&self, index: usize) -> &[usize] {
        &self.tree.boxes[index].children
    }

    fn fields(&self, index: usize) -> Vec<(&'static str, serde_json::Value)> {
        let of = &self.tree.boxes[index];
        let Some(function) = of.function else {
            return vec![
                ("name", json!("all")),
                ("value", json!(of.value)),
                ("measure", json!(self.tree.measure.as_str())),
                ("unit", json!(raw_unit(self.tree.measure))),
                ("total", json!(self.tree.whole)),
                (
                    "hidden",
                    hidden_with(self.hidden, (self.tree.whole, self.tree.measure), &json!(self.hidden.self_cost)),
                ),
                ("remarks", json!(self.remarks)),
            ];
        };
        let function = self.tree.functions.function(function);
        let mut fields = vec![("name", json!(&**function.full_name())), ("value", json!(of.value))];
        fields.extend(text("filename", function.filename.as_deref()));
        fields.extend(text("module", function.module_name().map(|name| &**name)));
        fields.extend(function.first_line.map(|line| ("lineno", json!(line))));
        fields.push(("kind", json!(function.kind.as_str())));
        fields
    }
}
