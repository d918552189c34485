//! Places frames of another interpreter whose position was unknown at capture.

use std::sync::Arc;

use crate::{Frame, FrameKind};

/// Moves the leading frames of a stack, which are those of another interpreter, to just inside the innermost native
/// function that runs them: one whose name contains the first of `runs_in` that any name contains. Without such a
/// function they stay innermost.
///
/// The Python functions of `own_file`, which captured the stack, and their callees are left out. A stack of Python
/// frames alone is unchanged.
pub fn place_scripts(stack: &[Arc<Frame>], own_file: &str, runs_in: &[String]) -> Vec<Arc<Frame>> {
    let scripts = stack.iter().take_while(|frame| frame.kind == FrameKind::Script).count();
    let (scripts, rest) = stack.split_at(scripts);
    if scripts.is_empty() && rest.iter().all(|frame| frame.kind != FrameKind::Native) {
        return rest.to_vec();
    }
    let rest = &rest[capture_frames(rest, own_file)..];
    let is_loop = |name: &String| {
        let runs = |frame: &Arc<Frame>| frame.kind == FrameKind::Native && frame.name.contains(&**name);
        rest.iter().position(runs)
    };
    let (inside, outside) = rest.split_at(runs_in.iter().find_map(is_loop).unwrap_or(0));
    [inside, scripts, outside].concat()
}

/// Returns how many frames belong to the capture: Python functions of a file, and native code inside of them.
fn capture_frames(frames: &[Arc<Frame>], own_file: &str) -> usize {
    let is_own = |frame: &Arc<Frame>| frame.kind == FrameKind::Python && frame.filename.as_deref() == Some(own_file);
    let may_be = frames.iter().take_while(|frame| frame.kind == FrameKind::Native || is_own(frame)).count();
    frames[..may_be].iter().rposition(is_own).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use stackweave_core::Position;

    use super::*;

    fn frame(kind: FrameKind, name: &str) -> Arc<Frame> {
        let filename = if name.starts_with("own_") { "own.py" } else { "other.py" };
        Arc::new(Frame {
            kind,
            name: Arc::from(name),
            qualname: None,
            filename: Some(Arc::from(filename)),
            first_line: None,
            position: Position::default(),
            module: Some(Arc::from("libhost.so")),
            is_inlined: false,
            address: None,
            is_own: false,
        })
    }

    /// Returns the result for frames that are named by a letter and a name: s(cript), n(ative), p(ython).
    fn woven_names(stack: &[&str]) -> Vec<String> {
        let kinds = [("s ", FrameKind::Script), ("n ", FrameKind::Native), ("p ", FrameKind::Python)];
        let read = |text: &&str| {
            kinds.iter().find_map(|(letter, kind)| text.strip_prefix(letter).map(|name| frame(*kind, name))).unwrap()
        };
        let stack: Vec<_> = stack.iter().map(read).collect();
        let runs_in = ["Impl::run".to_owned(), "Loop::run".to_owned()];
        place_scripts(&stack, "own.py", &runs_in).iter().map(|frame| frame.name.to_string()).collect()
    }

    #[test]
    fn frames_of_a_script_are_moved_inside_its_loop() {
        let stack = ["s inner", "s outer", "p callback", "n bool Impl::runAll(int)", "n Loop::run(int)", "p main"];
        let woven = woven_names(&stack);
        assert_eq!(woven, ["callback", "inner", "outer", "bool Impl::runAll(int)", "Loop::run(int)", "main"]);
        let woven = woven_names(&["s inner", "p callback", "n Loop::run(int)", "p main"]);
        assert_eq!(woven, ["callback", "inner", "Loop::run(int)", "main"]);
    }

    #[test]
    fn frames_of_a_script_without_its_loop_stay_innermost() {
        assert_eq!(woven_names(&["s inner", "p Loop::run"]), ["inner", "Loop::run"]);
    }

    #[test]
    fn frames_of_the_capture_are_left_out_of_native_stacks() {
        assert_eq!(
            woven_names(&["p own_a", "n eval", "p own_b", "n eval", "p main", "p own_c"]),
            ["eval", "main", "own_c"]
        );
        assert_eq!(woven_names(&["s inner", "p own_a", "p main"]), ["inner", "main"]);
        assert_eq!(woven_names(&["n eval", "p main"]), ["eval", "main"]);
        assert_eq!(
            woven_names(&["p own_a", "p main"]),
            ["own_a", "main"],
            "a stack of Python frames alone is unchanged"
        );
    }
}
