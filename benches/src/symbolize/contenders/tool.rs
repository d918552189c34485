//! A symbolizer that is a program: it reads addresses and writes answers until its input ends.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use super::Chain;
use crate::meter::Spent;

#[derive(Debug)]
pub(super) struct Tool {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Tool {
    pub(super) fn start(command: &mut Command) -> Result<Self, String> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("no pipes".to_owned());
        };
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Writes `request` while `read` consumes the answer, so that neither pipe fills up.
    pub(super) fn exchange<T>(
        &mut self,
        request: &str,
        read: impl FnOnce(&mut BufReader<ChildStdout>) -> io::Result<T>,
    ) -> Result<T, String> {
        let Self { input, output, .. } = self;
        let answer = thread::scope(|scope| {
            let writer = scope.spawn(move || input.write_all(request.as_bytes()).and_then(|()| input.flush()));
            let answer = read(output);
            let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer panicked")));
            answer.and_then(|answer| written.map(|()| answer))
        });
        answer.map_err(|error| error.to_string())
    }

    pub(super) fn spent(&self) -> Spent {
        Spent::by_process(self.child.id())
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads one line, and returns it without its end. Fails at the end of the output.
pub(super) fn line(output: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if output.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

/// Returns the names from lines that alternate between a function and its file and line.
pub(super) fn names(lines: &[String]) -> Chain {
    lines.iter().step_by(2).filter(|name| *name != "??").cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_larger_than_a_pipe_go_through() {
        let Ok(mut echo) = Tool::start(&mut Command::new("cat")) else { return };
        let request = "0123456789\n".repeat(100_000);
        let lines =
            echo.exchange(&request, |output| (0..100_000).map(|_| line(output)).collect::<io::Result<Vec<_>>>());
        assert_eq!(lines.map(|lines| lines.len()), Ok(100_000));
        assert!(echo.spent().cpu_ms > 0.0);
    }

    #[test]
    fn a_tool_that_ends_is_an_error() {
        let Ok(mut gone) = Tool::start(&mut Command::new("true")) else { return };
        assert!(gone.exchange("", line).is_err());
    }

    #[test]
    fn question_marks_are_not_a_name() {
        let lines = ["f", "a.c:1", "??", "??:0", "g()", "b.c:2"].map(str::to_owned);
        assert_eq!(names(&lines), ["f", "g()"]);
    }
}
