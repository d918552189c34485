//! Names and lines from an addr2line program that runs as a child process.

mod answers;
mod conversation;
mod error;
pub(crate) mod program;

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use answers::{Answers, END_MARK};
use conversation::{Conversation, End};
pub(crate) use error::ChildError;
use program::Make;

use crate::resolved::Frame;

/// How long a child may take for a batch, beside the time for its addresses: it reads all debug information first.
pub(crate) const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);
/// How much longer it may take for each address of a batch.
const PER_ADDRESS: Duration = Duration::from_millis(20);
/// How many addresses are asked for at once.
const BATCH: usize = 1024;

/// An addr2line child for one module. It ends when this is dropped, or at its first fault.
#[derive(Debug)]
pub(crate) struct Addr2lineChild {
    conversation: Conversation,
    deadline: Duration,
    fault: Option<ChildError>,
}

impl Addr2lineChild {
    /// Starts `binary` on `module_file`. Each batch of addresses has `deadline`, and a little for each address.
    pub(crate) fn start(binary: &Path, module_file: &Path, deadline: Duration) -> Result<Self, ChildError> {
        if !module_file.is_file() {
            return Err(ChildError::NoModuleFile(module_file.to_owned()));
        }
        let make = Make::of(binary, deadline)?;
        let conversation = Conversation::start(binary, &make.arguments(module_file))?;
        Ok(Self { conversation, deadline, fault: None })
    }

    /// The frames at each of the `stated` addresses, innermost first: none where nothing is known.
    ///
    /// After an error the child is gone, and the error stays.
    pub(crate) fn resolve(&mut self, stated: &[u64]) -> Result<Vec<Vec<Frame>>, ChildError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let asked: Vec<u64> = stated.iter().copied().filter(|&address| address != END_MARK).collect();
        let mut chains = Vec::with_capacity(asked.len());
        for batch in asked.chunks(BATCH) {
            match self.ask(batch) {
                Ok(answers) => chains.extend(answers),
                Err(fault) => {
                    self.conversation.end();
                    self.fault = Some(fault.clone());
                    return Err(fault);
                }
            }
        }
        let mut chains = chains.into_iter();
        let chain_of = |&address: &u64| if address == END_MARK { None } else { chains.next() };
        Ok(stated.iter().map(chain_of).map(Option::unwrap_or_default).collect())
    }

    fn ask(&mut self, batch: &[u64]) -> Result<Vec<Vec<Frame>>, ChildError> {
        let mut request = String::with_capacity(20 * (batch.len() + 1));
        for address in batch.iter().chain([&END_MARK]) {
            let _ = writeln!(request, "{address:#x}");
        }
        let limit = self.deadline + PER_ADDRESS * u32::try_from(batch.len()).unwrap_or(u32::MAX);
        let mut answers = Answers::new(batch);
        match self.conversation.exchange(request.as_bytes(), limit, &mut |bytes| answers.take(bytes))? {
            End::Heard => Ok(answers.into_chains()),
            End::Closed => Err(self.conversation.death()),
        }
    }
}

#[cfg(test)]
mod tests;
