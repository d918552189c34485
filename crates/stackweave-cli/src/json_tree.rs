//! Trees as nested JSON, however deep they are.

use std::io::{self, Write};

use serde_json::Value;

/// A tree whose nodes have places.
pub(crate) trait Nested {
    /// What is below a node.
    fn children(&self, place: usize) -> &[usize];

    /// What stands in a node, besides `children`.
    fn fields(&self, place: usize) -> Vec<(&'static str, Value)>;
}

/// Writes a node with all below it, a line each.
pub(crate) fn write_nested(out: &mut dyn Write, tree: &impl Nested, root: usize) -> io::Result<()> {
    write_node(out, tree, root)?;
    let mut open = vec![(root, 0)];
    while let Some((place, next)) = open.last_mut() {
        let children = tree.children(*place);
        let Some(child) = children.get(*next) else {
            out.write_all(if children.is_empty() { b"}" } else { b"]}" })?;
            open.pop();
            continue;
        };
        out.write_all(if *next == 0 { b",\"children\":[\n" } else { b",\n" })?;
        *next += 1;
        write_node(out, tree, *child)?;
        open.push((*child, 0));
    }
    Ok(())
}

/// Writes a node up to its last field.
fn write_node(out: &mut dyn Write, tree: &impl Nested, place: usize) -> io::Result<()> {
    for (index, (name, value)) in tree.fields(place).iter().enumerate() {
        write!(out, "{}\"{name}\":", if index == 0 { '{' } else { ',' })?;
        serde_json::to_writer(&mut *out, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Chain(Vec<Vec<usize>>);

    impl Nested for Chain {
        fn children(&self, place: usize) -> &[usize] {
            &self.0[place]
        }

        fn fields(&self, place: usize) -> Vec<(&'static str, Value)> {
            vec![("place", json!(place))]
        }
    }

    #[test]
    fn nodes_are_nested() {
        let mut out = Vec::new();
        let tree = Chain(vec![vec![1, 3], vec![2], vec![], vec![]]);
        assert!(write_nested(&mut out, &tree, 0).is_ok());
        let read: Value = serde_json::from_slice(&out).unwrap_or_default();
        let leaf = |place| json!({"place": place});
        assert_eq!(read, json!({"place": 0, "children": [{"place": 1, "children": [leaf(2)]}, leaf(3)]}));
    }

    #[test]
    fn a_deep_tree_needs_no_deep_stack() {
        let many = 200_000;
        let mut chain: Vec<Vec<usize>> = (1..many).map(|next| vec![next]).collect();
        chain.push(Vec::new());
        let mut out = Vec::new();
        assert!(write_nested(&mut out, &Chain(chain), 0).is_ok());
        assert_eq!(String::from_utf8_lossy(&out).matches('{').count(), many);
    }
}
