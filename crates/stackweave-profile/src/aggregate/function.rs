//! Functions, and their lines in frames, without duplicates.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use stackweave_core::{BuildId, FunctionNames, Module};

use crate::aggregate::origin::CodeOrigin;
use crate::frame::FrameKind;
use crate::word_hash::WordMap;

/// A function of a profile. An id is valid only for its [`FunctionTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub(crate) u32);

impl FunctionId {
    /// Returns the index in [`FunctionTable::functions`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A frame of a profile: a function, with a line if lines are separate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameIndex(pub(crate) u32);

impl FrameIndex {
    /// Returns the index in [`FunctionTable::frames`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The module of a native function; in merged recordings that of the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionModule {
    /// Its file name without folders.
    pub name: Arc<str>,
    /// Its path in the process that was recorded.
    pub path: PathBuf,
    /// Its build id, if it has one.
    pub build_id: Option<BuildId>,
}

impl From<&Module> for FunctionModule {
    fn from(module: &Module) -> Self {
        Self { name: module.name().into(), path: module.path.clone(), build_id: module.build_id.clone() }
    }
}

/// A function. Unknown fields are `None`.
///
/// Two functions are the same if kind, qualified name and location are equal: the file and the first line of an
/// interpreted function, the module of a native one (whose lines may be in several files).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The kind.
    pub kind: FrameKind,
    /// The name.
    pub name: Arc<str>,
    /// The name with the classes and functions around it, in languages that have such names.
    pub qualname: Option<Arc<str>>,
    /// The source file: of a native function the first one that was found.
    pub filename: Option<Arc<str>>,
    /// The module of a native function.
    pub module: Option<Arc<FunctionModule>>,
    /// The first line.
    pub first_line: Option<u32>,
    /// The origin of the code.
    pub origin: CodeOrigin,
}

impl Function {
    /// Returns the qualified name, or else the name.
    pub fn full_name(&self) -> &Arc<str> {
        self.qualname.as_ref().unwrap_or(&self.name)
    }

    /// Returns the file name of its module, without folders.
    pub fn module_name(&self) -> Option<&Arc<str>> {
        self.module.as_ref().map(|module| &module.name)
    }

    /// Returns the names that patterns match.
    pub fn names(&self) -> FunctionNames<'_> {
        FunctionNames {
            module: self.module_name().map(|name| &**name),
            file: self.filename.as_deref(),
            function: self.full_name(),
        }
    }

    fn key(&self) -> FunctionKey {
        let is_native = self.kind == FrameKind::Native;
        FunctionKey {
            kind: self.kind,
            name: Arc::clone(self.full_name()),
            location: if is_native { self.module_name().cloned() } else { self.filename.clone() },
            first_line: if is_native { None } else { self.first_line },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FunctionKey {
    kind: FrameKind,
    name: Arc<str>,
    location: Option<Arc<str>>,
    first_line: Option<u32>,
}

impl FunctionKey {
    fn without_line(self) -> Self {
        Self { first_line: None, ..self }
    }
}

/// A frame: a function, with a line if lines are separate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProfileFrame {
    /// The function.
    pub function: FunctionId,
    /// The line.
    pub line: Option<u32>,
}

/// The functions and frames of a profile.
#[derive(Clone, Debug, Default)]
pub struct FunctionTable {
    functions: Vec<Function>,
    frames: Vec<ProfileFrame>,
    by_key: HashMap<FunctionKey, FunctionId>,
    by_line: WordMap<u64, FrameIndex>,
}

impl FunctionTable {
    /// Returns all functions by id.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns all frames by index.
    pub fn frames(&self) -> &[ProfileFrame] {
        &self.frames
    }

    /// Returns the function with this id.
    ///
    /// # Panics
    /// If another table gave the id.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }

    /// Returns the frame with this index.
    ///
    /// # Panics
    /// If another table gave the index.
    pub fn frame(&self, index: FrameIndex) -> ProfileFrame {
        self.frames[index.index()]
    }

    /// Returns the function of a frame.
    ///
    /// # Panics
    /// If another table gave the index.
    pub fn function_of(&self, index: FrameIndex) -> &Function {
        self.function(self.frame(index).function)
    }

    /// Returns the id of an equal function.
    pub fn find(&self, function: &Function) -> Option<FunctionId> {
        self.by_key.get(&function.key()).copied()
    }

    /// Returns the id of a function; a new function gets one.
    #[expect(clippy::cast_possible_truncation, reason = "that many functions do not fit into memory")]
    pub fn intern(&mut self, function: Function) -> FunctionId {
        *self.by_key.entry(function.key()).or_insert_with(|| {
            self.functions.push(function);
            FunctionId((self.functions.len() - 1) as u32)
        })
    }

    /// Returns the index of a frame; a new frame gets one.
    #[expect(clippy::cast_possible_truncation, reason = "that many frames do not fit into memory")]
    pub fn intern_frame(&mut self, function: FunctionId, line: Option<u32>) -> FrameIndex {
        let key = u64::from(function.0) << 32 | u64::from(line.unwrap_or(0));
        *self.by_line.entry(key).or_insert_with(|| {
            self.frames.push(ProfileFrame { function, line: line.filter(|line| *line != 0) });
            FrameIndex((self.frames.len() - 1) as u32)
        })
    }

    /// Adds everything of `other`, and returns for each of its frames the index here.
    pub fn extend(&mut self, other: &Self) -> Vec<FrameIndex> {
        let functions: Vec<FunctionId> = other.functions.iter().map(|function| self.intern(function.clone())).collect();
        self.extend_frames(other, &functions)
    }

    /// Adds everything of `other`, which is of another version of the program. Returns for each of its functions the id
    /// here, and for each of its frames the index. A function with another first line is the same one, if its name is
    /// unique in its file in both.
    pub fn extend_by_version(&mut self, other: &Self) -> (Vec<FunctionId>, Vec<FrameIndex>) {
        let (here, there) = (self.by_name(), other.by_name());
        let function = |function: &Function| {
            let moved = function.key().without_line();
            match (self.find(function), there.get(&moved), here.get(&moved)) {
                (None, Some(Some(_)), Some(Some(same))) => *same,
                _ => self.intern(function.clone()),
            }
        };
        let functions: Vec<FunctionId> = other.functions.iter().map(function).collect();
        let frames = self.extend_frames(other, &functions);
        (functions, frames)
    }

    fn extend_frames(&mut self, other: &Self, functions: &[FunctionId]) -> Vec<FrameIndex> {
        let frame = |frame: &ProfileFrame| self.intern_frame(functions[frame.function.index()], frame.line);
        other.frames.iter().map(frame).collect()
    }

    /// Returns the function of each name in each file; `None` if there are several.
    #[expect(clippy::cast_possible_truncation, reason = "ids have 32 bits")]
    fn by_name(&self) -> HashMap<FunctionKey, Option<FunctionId>> {
        let mut known = HashMap::new();
        for (index, function) in self.functions.iter().enumerate() {
            let id = FunctionId(index as u32);
            known.entry(function.key().without_line()).and_modify(|same| *same = None).or_insert(Some(id));
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(kind: FrameKind, filename: &str, module: &str, first_line: u32) -> Function {
        Function {
            kind,
            name: "f".into(),
            qualname: None,
            filename: Some(filename.into()),
            module: Some(Arc::new(FunctionModule { name: module.into(), path: module.into(), build_id: None })),
            first_line: Some(first_line),
            origin: CodeOrigin::Program,
        }
    }

    #[test]
    fn interpreted_functions_are_distinguished_by_file_and_line_and_native_ones_by_module() {
        let mut table = FunctionTable::default();
        let first = table.intern(function(FrameKind::Python, "a.py", "", 1));
        assert_eq!(table.intern(function(FrameKind::Python, "a.py", "", 1)), first);
        assert_ne!(table.intern(function(FrameKind::Python, "a.py", "", 2)), first);
        assert_ne!(table.intern(function(FrameKind::Script, "a.py", "", 1)), first);
        let native = table.intern(function(FrameKind::Native, "a.c", "liba.so", 1));
        assert_eq!(table.intern(function(FrameKind::Native, "generated.h", "liba.so", 9)), native);
        assert_ne!(table.intern(function(FrameKind::Native, "a.c", "libb.so", 1)), native);
    }

    #[test]
    fn a_function_of_another_version_is_matched_by_a_unique_name() {
        let named = |name: &str, line| Function { name: name.into(), ..function(FrameKind::Python, "a.py", "", line) };
        let (mut before, mut after) = (FunctionTable::default(), FunctionTable::default());
        let load = before.intern(named("load", 10));
        let [first, second] = [20, 30].map(|line| before.intern(named("<lambda>", line)));
        after.intern(named("load", 12));
        after.intern(named("<lambda>", 32));
        after.intern(named("<lambda>", 30));
        after.intern(named("save", 10));
        let (functions, _) = before.extend_by_version(&after);
        assert_eq!((functions[0], functions[2]), (load, second));
        assert!(functions[1] != first && functions[3].index() > functions[1].index(), "{functions:?}");
        assert_eq!(before.functions().len(), 5);
    }

    #[test]
    fn frames_of_another_table_get_indexes() {
        let (mut one, mut other) = (FunctionTable::default(), FunctionTable::default());
        let a = one.intern(function(FrameKind::Python, "a.py", "", 1));
        one.intern_frame(a, None);
        let b = other.intern(function(FrameKind::Python, "b.py", "", 1));
        let a_there = other.intern(function(FrameKind::Python, "a.py", "", 1));
        other.intern_frame(b, Some(3));
        other.intern_frame(a_there, None);
        let indexes = one.extend(&other);
        assert_eq!(indexes.iter().map(|index| index.index()).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(one.frame(indexes[0]).line, Some(3));
        assert_eq!((one.functions().len(), one.frames().len()), (2, 2));
    }
}
