//! Reads reports like the page does: `report/src/shared/format.ts` documents the encoding.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use flate2::read::ZlibDecoder;
use serde_json::Value;
use stackweave_export::{ExportOptions, Format, write};
use stackweave_profile::Profile;
use stackweave_recording::Recording;

/// Calls, self and total cost by path, outermost first; each step is a name and a line.
pub type LineTree = BTreeMap<Vec<String>, (u64, i64, i64)>;

/// A report that was read.
pub struct Page {
    pub head: Value,
    /// The page without the contents of its blocks.
    pub bare: String,
    /// The remark about sources that are left out, as the recordings of tests have no user.
    pub left_out: Option<String>,
    blocks: HashMap<String, Vec<u8>>,
}

/// The columns of a block, one after another.
pub struct Columns<'p>(&'p [u8]);

const BEGIN: &str = "<script type=\"application/vnd.stackweave\" id=\"sw-";
const END: &str = "</script>";

impl Page {
    pub fn of(recording: &Recording, options: &ExportOptions<'_>) -> Self {
        let mut text = Vec::new();
        write(recording, Format::Report, &mut text, options, (None, &mut |_| {})).unwrap();
        Self::read(&String::from_utf8(text).unwrap())
    }

    pub fn read(text: &str) -> Self {
        let mut parts = text.split(BEGIN);
        let mut bare = parts.next().unwrap().to_owned();
        let mut blocks = HashMap::new();
        for part in parts {
            let (id, rest) = part.split_once("\">").unwrap();
            let (data, after) = rest.split_once(END).unwrap();
            assert!(blocks.insert(id.to_owned(), inflated(data)).is_none(), "two blocks {id}");
            bare.push_str(after);
        }
        let mut head: Value = serde_json::from_slice(&blocks["head"]).unwrap();
        let remarks = head["remarks"].as_array_mut().unwrap();
        let left_out =
            remarks.iter().position(|remark| remark.as_str().unwrap().starts_with("Source files are left out"));
        let left_out = left_out.map(|index| remarks.remove(index).as_str().unwrap().to_owned());
        Self { head, bare, left_out, blocks }
    }

    pub fn bytes(&self, block: &Value) -> &[u8] {
        &self.blocks[&block.as_u64().unwrap().to_string()]
    }

    pub fn json(&self, block: &Value) -> Value {
        serde_json::from_slice(self.bytes(block)).unwrap()
    }

    pub fn columns(&self, block: &Value) -> Columns<'_> {
        Columns(self.bytes(block))
    }

    pub fn strings(&self) -> Vec<String> {
        let all = self.json(&self.head["strings"]);
        all.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    /// Returns the names of functions.
    pub fn functions(&self) -> Vec<String> {
        let strings = self.strings();
        let names = self.columns(&self.head["functions"]).plain();
        names.into_iter().map(|name| strings[index(name)].clone()).collect()
    }

    /// Returns the texts of sources, by file, and whether they were changed.
    pub fn sources(&self) -> BTreeMap<String, (String, bool)> {
        let strings = self.strings();
        let source = |source: &Value| {
            let text = String::from_utf8(self.bytes(&source["block"]).to_vec()).unwrap();
            let file = strings[index(source["file"].as_u64().unwrap())].clone();
            (file, (text, source["changed"].as_bool().unwrap()))
        };
        self.head["sources"].as_array().unwrap().iter().map(source).collect()
    }

    pub fn trees(&self) -> &[Value] {
        self.head["trees"].as_array().unwrap()
    }

    /// Returns the sum of all trees that `is_wanted` accepts.
    pub fn tree(&self, is_wanted: impl Fn(&Value) -> bool) -> LineTree {
        let mut sum = LineTree::new();
        for tree in self.trees().iter().filter(|tree| is_wanted(tree)) {
            for (path, (calls, self_cost, total)) in self.paths(tree) {
                let known = sum.entry(path).or_default();
                *known = (known.0 + calls, known.1 + self_cost, known.2 + total);
            }
        }
        sum
    }

    fn paths(&self, tree: &Value) -> LineTree {
        let names = self.functions();
        let mut frames = self.columns(&self.head["frames"]);
        let (functions, lines) = (frames.plain(), frames.plain());
        let mut columns = self.columns(&tree["block"]);
        let (back, frame, calls) = (columns.plain(), columns.plain(), columns.plain());
        let self_cost = columns.signed();
        assert!(columns.0.is_empty() && tree["nodes"] == self_cost.len() && back[0] == 0);
        let mut total = self_cost.clone();
        for node in (1..self_cost.len()).rev() {
            total[node - index(back[node])] += total[node];
        }
        assert_eq!(tree["total"], total[0]);
        let mut paths: Vec<Vec<String>> = vec![Vec::new()];
        let mut found = LineTree::from([(Vec::new(), (calls[0], self_cost[0], total[0]))]);
        for node in 1..self_cost.len() {
            assert!(back[node] > 0);
            let mut path = paths[node - index(back[node])].clone();
            let at = index(frame[node]);
            path.push(step(&names[index(functions[at])], lines[at]));
            let known = found.entry(path.clone()).or_default();
            *known = (known.0 + calls[node], known.1 + self_cost[node], known.2 + total[node]);
            paths.push(path);
        }
        found
    }
}

/// Returns the tree of a profile in the same form.
pub fn lines_of(profile: &Profile) -> LineTree {
    let (tree, functions) = (profile.tree(), profile.functions());
    let mut paths: Vec<Vec<String>> = vec![Vec::new(); tree.nodes().len()];
    let root = tree.nodes()[0].cost;
    let mut found = LineTree::from([(Vec::new(), (root.calls, root.self_cost, root.total))]);
    for (id, node) in tree.iter() {
        let line = functions.frame(node.frame).line.unwrap_or(0);
        let mut path = paths[node.parent.index()].clone();
        path.push(step(functions.function_of(node.frame).full_name(), line.into()));
        let known = found.entry(path.clone()).or_default();
        *known = (known.0 + node.cost.calls, known.1 + node.cost.self_cost, known.2 + node.cost.total);
        paths[id.index()] = path;
    }
    found
}

fn step(name: &str, line: u64) -> String {
    format!("{name}:{line}")
}

impl Columns<'_> {
    pub fn plain(&mut self) -> Vec<u64> {
        (0..self.number()).map(|_| self.number()).collect()
    }

    pub fn signed(&mut self) -> Vec<i64> {
        self.plain().into_iter().map(|value| (value >> 1).cast_signed() ^ -(value & 1).cast_signed()).collect()
    }

    /// Reads a column that never decreases, starting at `first`.
    pub fn differences(&mut self, first: u64) -> Vec<u64> {
        let add = |sum: &mut u64, value: u64| {
            *sum += value;
            Some(*sum)
        };
        self.plain().into_iter().scan(first, add).collect()
    }

    /// Reads a text after the columns: its length, and its bytes.
    pub fn text(&mut self) -> String {
        let length = index(self.number());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8(text.to_vec()).unwrap()
    }

    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (byte, rest) = self.0.split_first().unwrap();
            self.0 = rest;
            value |= u64::from(byte & 127) << shift;
            if byte & 128 == 0 {
                return value;
            }
            shift += 7;
        }
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

fn inflated(base64: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    assert_eq!(base64.len() % 4, 0);
    let mut values = [None; 256];
    digits.iter().zip(0_u32..).for_each(|(digit, value)| values[usize::from(*digit)] = Some(value));
    let digit = |byte: &u8| values[usize::from(*byte)].unwrap();
    let mut compressed = Vec::new();
    for four in base64.trim_end_matches('=').as_bytes().chunks(4) {
        let word = four.iter().fold(0, |word, byte| word << 6 | digit(byte)) << (6 * (4 - four.len()));
        compressed.extend(&word.to_be_bytes()[1..four.len()]);
    }
    let mut bytes = Vec::new();
    ZlibDecoder::new(compressed.as_slice()).read_to_end(&mut bytes).unwrap();
    bytes
}
