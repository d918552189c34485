//! A child process of llvm-symbolizer, which also judges the others.

use std::fmt::Write;
use std::io::{self, BufRead};
use std::path::PathBuf;
use std::process::Command;

use super::tool::{self, Tool};
use super::{Chain, Contender, Job, Place, Resolve, Spent, measure};

const PROGRAM: &str = "llvm-symbolizer";

pub(super) const CONTENDER: Contender = Contender {
    name: PROGRAM,
    version,
    measure: measure::<Llvm>,
    many_modules: true,
    in_process_only: false,
    is_slow: true,
};

#[derive(Debug)]
struct Llvm {
    modules: Vec<PathBuf>,
    tool: Option<Tool>,
}

fn version() -> Result<String, String> {
    let output = Command::new(PROGRAM).arg("--version").output().map_err(|_| "not installed".to_owned())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().skip_while(|word| *word != "version").nth(1);
    Ok(format!("{}, a child process", version.unwrap_or("unknown")))
}

impl Resolve for Llvm {
    type Answers = Vec<Chain>;

    fn prepare(job: &Job) -> Result<Self, String> {
        Ok(Self { modules: job.modules.clone(), tool: None })
    }

    fn resolve(&mut self, places: &[Place]) -> Result<Self::Answers, String> {
        if self.tool.is_none() {
            let mut command = Command::new(PROGRAM);
            self.tool = Some(Tool::start(command.args(["--inlines", "--demangle", "--functions=linkage"]))?);
        }
        let Some(tool) = &mut self.tool else { return Err("not started".to_owned()) };
        let mut request = String::new();
        for place in places {
            let _ = writeln!(request, "CODE \"{}\" {:#x}", self.modules[place.module].display(), place.address);
        }
        tool.exchange(&request, |output| places.iter().map(|_| answer(output)).collect())
    }

    fn chains(answers: &Self::Answers) -> Vec<Chain> {
        answers.clone()
    }

    fn spent(&self) -> Spent {
        self.tool.as_ref().map_or_else(Spent::default, Tool::spent)
    }
}

/// Reads one answer, which ends with an empty line.
fn answer(output: &mut impl BufRead) -> io::Result<Chain> {
    let mut lines = Vec::new();
    loop {
        match tool::line(output)? {
            end if end.is_empty() => return Ok(tool::names(&lines)),
            line => lines.push(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_end_with_an_empty_line() -> io::Result<()> {
        let mut output = "inner\n/a.c:3:1\nouter\n/a.c:9:2\n\n??\n??:0:0\n\n".as_bytes();
        assert_eq!(answer(&mut output)?, ["inner", "outer"]);
        assert!(answer(&mut output)?.is_empty());
        assert!(answer(&mut output).is_err());
        Ok(())
    }
}
