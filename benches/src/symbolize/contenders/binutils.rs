//! A child process of binutils' addr2line, which reads one file, and keeps nothing from one address to the next.

use std::fmt::Write;
use std::io::{self, BufRead};
use std::path::PathBuf;
use std::process::Command;

use super::tool::{self, Tool};
use super::{Chain, Contender, Job, Place, Resolve, Spent, measure};
use crate::machine;

const PROGRAM: &str = "addr2line";

pub(super) const CONTENDER: Contender = Contender {
    name: "binutils",
    version,
    measure: measure::<Binutils>,
    many_modules: false,
    in_process_only: false,
    is_slow: true,
};

#[derive(Debug)]
struct Binutils {
    module: PathBuf,
    tool: Option<Tool>,
}

fn version() -> Result<String, String> {
    match machine::first_line_of(PROGRAM, &["--version"]) {
        line if line.contains("Binutils") => Ok(format!("{line} -a -f -i -C, a child process")),
        _ => Err("not installed".to_owned()),
    }
}

impl Resolve for Binutils {
    type Answers = Vec<Chain>;

    const REMEMBERS: bool = false;

    fn prepare(job: &Job) -> Result<Self, String> {
        let module = job.modules.first().cloned().ok_or("no module")?;
        Ok(Self { module, tool: None })
    }

    fn resolve(&mut self, places: &[Place]) -> Result<Self::Answers, String> {
        if self.tool.is_none() {
            let mut command = Command::new(PROGRAM);
            self.tool = Some(Tool::start(command.args(["-a", "-f", "-i", "-C", "-e"]).arg(&self.module))?);
        }
        let Some(tool) = &mut self.tool else { return Err("not started".to_owned()) };
        let mut request = String::new();
        for place in places {
            let _ = writeln!(request, "{:#x}", place.address);
        }
        request.push_str("0x0\n");
        tool.exchange(&request, answers)
    }

    fn chains(answers: &Self::Answers) -> Vec<Chain> {
        answers.clone()
    }

    fn spent(&self) -> Spent {
        self.tool.as_ref().map_or_else(Spent::default, Tool::spent)
    }
}

/// Reads the answers, each of which begins with its address. The last request is for address 0, which is in no
/// function: its answer shows that the one before is complete.
fn answers(output: &mut impl BufRead) -> io::Result<Vec<Chain>> {
    let mut answers = Vec::<Vec<String>>::new();
    loop {
        let line = tool::line(output)?;
        if let Some(address) = line.strip_prefix("0x") {
            if address.trim_start_matches('0').is_empty() {
                tool::line(output)?;
                tool::line(output)?;
                return Ok(answers.iter().map(|lines| tool::names(lines)).collect());
            }
            answers.push(Vec::new());
        } else if let Some(lines) = answers.last_mut() {
            lines.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_end_with_that_of_address_zero() -> io::Result<()> {
        let text =
            "0x0000000000001139\nf()\n/a.c:1\ng\n/a.c:2\n0x0000000000001239\n??\n??:0\n0x0000000000000000\n??\n??:0\n";
        let mut output = text.as_bytes();
        assert_eq!(answers(&mut output)?, [vec!["f()".to_owned(), "g".to_owned()], vec![]]);
        assert!(output.is_empty());
        Ok(())
    }
}
