//! The frames of a stack that say who wanted something.

use std::sync::Arc;

use crate::{Frame, FrameKind, Origin};

/// A call that goes through more native modules is shown by where it enters the first.
const MOST_MODULES: usize = 4;

/// Returns the frames that say who wanted something, innermost first: not the interpreter's nor Stackweave's, and nothing
/// outside of where a recording begins inside of a larger program.
pub fn seen_frames(stack: &[Arc<Frame>]) -> impl Iterator<Item = &Arc<Frame>> {
    stack.iter().take_while(|frame| !frame.is_entrance()).filter(|frame| !is_interpreters(frame))
}

fn is_interpreters(frame: &Frame) -> bool {
    // Of a module only the file's name is known here, and no folder.
    let module = frame.module.as_deref().unwrap_or_default();
    let is_own = frame.kind == FrameKind::Native && module.starts_with("_native.");
    is_own || Origin::of(frame, module) == Origin::Interpreter
}

/// Returns of what a native module does inside only where it was entered, and of the innermost also the innermost frame.
pub fn without_insides<'a>(frames: impl IntoIterator<Item = &'a Arc<Frame>>) -> Vec<&'a Arc<Frame>> {
    let frames: Vec<&Arc<Frame>> = frames.into_iter().collect();
    let mut kept = Vec::new();
    for (number, group) in frames.chunk_by(|a, b| is_native(a) == is_native(b)).enumerate() {
        if !is_native(group[0]) {
            kept.extend(group);
            continue;
        }
        let modules: Vec<&[&Arc<Frame>]> = group.chunk_by(|a, b| a.module == b.module).collect();
        if modules.len() > MOST_MODULES {
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
    fn frames_of_the_interpreter_say_nothing() {
        let hidden = [
            native("_PyEval_EvalFrameDefault", "libpython3.12.so.1.0"),
            native("list_append", "python3.13"),
            native("__libc_start_main_impl", "libc.so.6"),
            native("start_thread", "libc.so.6"),
            native("capture", "_native.abi3.so"),
            python("_find_and_load", 1, "<frozen importlib._bootstrap>"),
            python("start", 1, "/venv/lib/python3.12/site-packages/stackweave/__init__.py"),
        ];
        let seen = [
            native("inflate", "libz.so.1"),
            native("strdup", "libc.so.6"),
            python("get", 3, "/usr/lib/python3.12/json/decoder.py"),
        ];
        let stack = [&hidden[..], &seen[..]].concat();
        assert!(seen_frames(&stack).eq(&seen));
        let entrance = python("run", 1, "/venv/lib/python3.12/site-packages/stackweave/_entrance.py");
        let stack = [&seen[..1], &[entrance], &seen[1..]].concat();
        assert!(seen_frames(&stack).eq(&seen[..1]));
    }

    #[test]
    fn the_inside_of_native_modules_is_left_out() {
        let of = |name: &str, module: &str| native(name, module);
        let main = python("main", 1, "app.py");
        let names = |stack: &[Arc<Frame>]| {
            without_insides(stack).iter().map(|frame| frame.name.to_string()).collect::<Vec<_>>()
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
