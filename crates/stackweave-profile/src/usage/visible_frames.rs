//! The frames of a stack that are shown in tables of memory.

use std::sync::Arc;

use crate::{CodeOrigin, Frame, FrameKind};

/// The maximum number of native modules that are shown one after another; more are shown by the entry to the first.
const MAX_MODULES: usize = 4;

/// Returns the visible frames, innermost first: without those of the interpreter and of Stackweave, and without those
/// outside of the recorded part of a larger program.
pub fn visible_frames(stack: &[Arc<Frame>]) -> impl Iterator<Item = &Arc<Frame>> {
    stack.iter().take_while(|frame| !frame.is_boundary()).filter(|frame| !is_of_interpreter(frame))
}

fn is_of_interpreter(frame: &Frame) -> bool {
    // Only the file name of a module is known here, not its folder.
    let module = frame.module.as_deref().unwrap_or_default();
    let is_own = frame.kind == FrameKind::Native && module.starts_with("_native.");
    is_own || CodeOrigin::of(frame, module) == CodeOrigin::Interpreter
}

/// Returns the frames without the inside of native modules: only the entry to each module, and the innermost frame.
pub fn collapsed_modules<'a>(frames: impl IntoIterator<Item = &'a Arc<Frame>>) -> Vec<&'a Arc<Frame>> {
    let frames: Vec<&Arc<Frame>> = frames.into_iter().collect();
    let mut kept = Vec::new();
    for (number, group) in frames.chunk_by(|a, b| is_native(a) == is_native(b)).enumerate() {
        if !is_native(group[0]) {
            kept.extend(group);
            continue;
        }
        let modules: Vec<&[&Arc<Frame>]> = group.chunk_by(|a, b| a.module == b.module).collect();
        if modules.len() > MAX_MODULES {
            kept.extend(group.last());
            continue;
        }
        if number == 0 && modules[0].len() > 1 {
            kept.push(group[0]);
        }
        kept.extend(modules.iter().filter_map(|inside| inside.last()));
    }
    kept
}

fn is_native(frame: &Frame) -> bool {
    frame.kind == FrameKind::Native
}

#[cfg(test)]
mod tests {
    use super::super::tests::{native, python};
    use super::*;

    #[test]
    fn frames_of_the_interpreter_are_hidden() {
        let hidden = [
            native("_PyEval_EvalFrameDefault", "libpython3.12.so.1.0"),
            native("list_append", "python3.13"),
            native("__libc_start_main_impl", "libc.so.6"),
            native("start_thread", "libc.so.6"),
            native("capture", "_native.abi3.so"),
            python("_find_and_load", 1, "<frozen importlib._bootstrap>"),
            python("start", 1, "/venv/lib/python3.12/site-packages/stackweave/__init__.py"),
        ];
        let visible = [
            native("inflate", "libz.so.1"),
            native("strdup", "libc.so.6"),
            python("get", 3, "/usr/lib/python3.12/json/decoder.py"),
        ];
        let stack = [&hidden[..], &visible[..]].concat();
        assert!(visible_frames(&stack).eq(&visible));
        let entrance = python("run", 1, "/venv/lib/python3.12/site-packages/stackweave/_boundary.py");
        let stack = [&visible[..1], &[entrance], &visible[1..]].concat();
        assert!(visible_frames(&stack).eq(&visible[..1]));
    }

    #[test]
    fn the_inside_of_native_modules_is_left_out() {
        let of = |name: &str, module: &str| native(name, module);
        let main = python("main", 1, "app.py");
        let names = |stack: &[Arc<Frame>]| {
            collapsed_modules(stack).iter().map(|frame| frame.name.to_string()).collect::<Vec<_>>()
        };
        let inside = ["alloc", "grow", "inflate"].map(|name| of(name, "libz.so.1"));
        let other = ["helper", "entry"].map(|name| of(name, "ext.so"));
        let stack = [&inside[..], &other, std::slice::from_ref(&main)].concat();
        assert_eq!(names(&stack), ["alloc", "inflate", "entry", "main"]);
        let through = ["a", "b", "c", "d", "binding"].map(|name| of(name, &format!("lib{name}.so")));
        assert_eq!(names(&[&through[..], &[main]].concat()), ["binding", "main"]);
        assert!(names(&[]).is_empty());
    }
}
