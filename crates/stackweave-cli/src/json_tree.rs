//! Trees as nested JSON, of any depth.

use std::io::{self, Write};

use serde_json::Value;

/// A tree whose nodes are numbered.
pub(crate) trait Nested {
    /// Returns the children of a node.
    fn children(&self, node: usize) -> &[usize];

    /// Returns the fields of a node besides `children`.
    fn fields(&self, node: usize) -> Vec<(&'static str, Value)>;
}

/// Writes a node with its descendants, one per line.
pub(crate) fn write_nested(out: &mut dyn Write, tree: &impl Nested, root: usize) -> io::Result<()> {
    write_node(out, tree, root)?;
    let mut open = vec![(root, 0)];
    while let Some((node, next)) = open.last_mut() {
        let children = tree.children(*node);
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

/// Writes the fields of a node, without the closing brace.
fn write_node(out: &mut dyn Write, tree: &impl Nested, node: usize) -> io::Result<()> {
    for (index, (name, value)) in tree.fields(node).iter().enumerate() {
        write!(out, "{}\"{name}\":", if index == 0 { '{' } else { ',' })?;
        serde_json::to_writer(&mut *out, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct ChainTree(Vec<Vec<usize>>);

    impl Nested for ChainTree {
        fn children(&self, node: usize) -> &[usize] {
            &self.0[node]
        }

        fn fields(&self, node: usize) -> Vec<(&'static str, Value)> {
            vec![("node", json!(node))]
        }
    }

    #[test]
    fn children_are_nested() {
        let mut out = Vec::new();
        let tree = ChainTree(vec![vec![1, 3], vec![2], vec![], vec![]]);
        assert!(write_nested(&mut out, &tree, 0).is_ok());
        let read: Value = serde_json::from_slice(&out).unwrap_or_default();
        let leaf = |node| json!({"node": node});
        assert_eq!(read, json!({"node": 0, "children": [{"node": 1, "children": [leaf(2)]}, leaf(3)]}));
    }

    #[test]
    fn a_deep_tree_does_not_overflow_the_stack() {
        let many = 200_000;
        let mut chain: Vec<Vec<usize>> = (1..many).map(|next| vec![next]).collect();
        chain.push(Vec::new());
        let mut out = Vec::new();
        assert!(write_nested(&mut out, &ChainTree(chain), 0).is_ok());
        assert_eq!(String::from_utf8_lossy(&out).matches('{').count(), many);
    }
}
