//! Names and lines from an addr2line program that runs as a child process.

mod child_process;
mod error;
mod output_parser;
pub(crate) mod program;

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use child_process::{ChildProcess, ExchangeEnd};
pub(crate) use error::ChildError;
use output_parser::{END_ADDRESS, OutputParser};
use program::ProgramKind;

use crate::resolved::ResolvedFrame;

/// The time limit of a batch, in addition to the time for its addresses: the child first reads all debug
/// information.
pub(crate) const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);
/// The additional time for each address of a batch.
const PER_ADDRESS: Duration = Duration::from_millis(20);
/// The number of addresses of a batch.
const BATCH: usize = 1024;

/// An addr2line child for one module. It is ended when this is dropped, or at its first fault.
#[derive(Debug)]
pub(crate) struct Addr2lineChild {
    child_process: ChildProcess,
    deadline: Duration,
    fault: Option<ChildError>,
}

impl Addr2lineChild {
    /// Starts `binary` for `module_file`. The time limit of each batch is `deadline`, plus a little for each
    /// address.
    pub(crate) fn start(binary: &Path, module_file: &Path, deadline: Duration) -> Result<Self, ChildError> {
        if !module_file.is_file() {
            return Err(ChildError::NoModuleFile(module_file.to_owned()));
        }
        let kind = ProgramKind::of(binary, deadline)?;
        let child_process = ChildProcess::start(binary, &kind.arguments(module_file))?;
        Ok(Self { child_process, deadline, fault: None })
    }

    /// Returns the frames at each of the `stated` addresses, innermost first: none if nothing is known.
    ///
    /// After an error, the child is ended, and every later call returns the same error.
    pub(crate) fn resolve(&mut self, stated: &[u64]) -> Result<Vec<Vec<ResolvedFrame>>, ChildError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let addresses: Vec<u64> = stated.iter().copied().filter(|&address| address != END_ADDRESS).collect();
        let mut chains = Vec::with_capacity(addresses.len());
        for batch in addresses.chunks(BATCH) {
            match self.query(batch) {
                Ok(frames) => chains.extend(frames),
                Err(fault) => {
                    self.child_process.end();
                    self.fault = Some(fault.clone());
                    return Err(fault);
                }
            }
        }
        let mut chains = chains.into_iter();
        let chain_of = |&address: &u64| if address == END_ADDRESS { None } else { chains.next() };
        Ok(stated.iter().map(chain_of).map(Option::unwrap_or_default).collect())
    }

    fn query(&mut self, batch: &[u64]) -> Result<Vec<Vec<ResolvedFrame>>, ChildError> {
        let mut request = String::with_capacity(20 * (batch.len() + 1));
        for address in batch.iter().chain([&END_ADDRESS]) {
            let _ = writeln!(request, "{address:#x}");
        }
        let limit = self.deadline + PER_ADDRESS * u32::try_from(batch.len()).unwrap_or(u32::MAX);
        let mut parser = OutputParser::new(batch);
        match self.child_process.exchange(request.as_bytes(), limit, &mut |bytes| parser.take(bytes))? {
            ExchangeEnd::Finished => Ok(parser.into_chains()),
            ExchangeEnd::Closed => Err(self.child_process.death()),
        }
    }
}

#[cfg(test)]
mod tests;
