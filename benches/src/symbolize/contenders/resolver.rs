//! Our resolver, `stackweave_profile::Resolver`, which gets the same addresses as captured stacks.

use std::sync::Arc;

use stackweave_core::{ModuleList, RawFrame, SourceLocation, StackId};
use stackweave_profile::{Frame, FrameNames, Resolver};
use stackweave_store::StackTable;
use stackweave_symbolize::SymbolizerOptions;

use super::{Chain, Contender, Job, Place, Resolve, measure, ours};

pub(super) const CONTENDER: Contender = Contender {
    name: "ours, stacks",
    version: || Ok("stackweave-profile, default options".to_owned()),
    measure: measure::<Captured>,
    many_modules: true,
    in_process_only: false,
    is_slow: false,
};

#[derive(Debug)]
struct Captured {
    stacks: StackTable,
    /// The stacks, interned before anything is timed, as a capture leaves them.
    ids: Vec<StackId>,
    names: Loaded,
    resolver: Option<Resolver>,
}

impl Resolve for Captured {
    type Answers = Vec<Arc<[Arc<Frame>]>>;

    fn prepare(job: &Job) -> Result<Self, String> {
        let stacks = StackTable::new();
        let mut ids = Vec::new();
        let mut rest = job.next.as_slice();
        for depth in &job.depths {
            let (stack, others) = rest.split_at_checked(*depth).ok_or("the stacks are deeper than there are frames")?;
            let frames = stack.iter().map(|place| RawFrame::native(ours::address(place))).collect::<Vec<_>>();
            ids.push(stacks.intern(&frames).ok_or("no memory for a stack")?);
            rest = others;
        }
        Ok(Self { stacks, ids, names: Loaded(ours::modules(job)), resolver: None })
    }

    fn resolve(&mut self, places: &[Place]) -> Result<Self::Answers, String> {
        let resolver = self.resolver.get_or_insert_with(|| Resolver::new(SymbolizerOptions::default()));
        let ids = if places.is_empty() { &[] } else { self.ids.as_slice() };
        Ok(resolver.resolve(&self.stacks, ids, &self.names))
    }

    fn chains(answers: &Self::Answers) -> Vec<Chain> {
        let frames = answers.iter().flat_map(|stack| stack.iter()).collect::<Vec<_>>();
        frames.chunk_by(|inner, _| inner.is_inlined).map(chain).collect()
    }
}

/// Returns the function names at one address. A frame that only has a place instead of a name is left out.
fn chain(frames: &[&Arc<Frame>]) -> Chain {
    let is_place = |frame: &Frame| match frame.module.as_deref() {
        Some(module) => frame.name.strip_prefix(module).is_some_and(|rest| rest.starts_with("+0x")),
        None => true,
    };
    frames.iter().filter(|frame| !is_place(frame)).map(|frame| frame.name.to_string()).collect()
}

#[derive(Debug)]
struct Loaded(ModuleList);

impl FrameNames for Loaded {
    fn locate(&self, _: RawFrame) -> Option<SourceLocation> {
        None
    }

    fn has_extra_frames(&self) -> bool {
        false
    }

    fn frames_behind(&self, _: &str, _: u32) -> Vec<SourceLocation> {
        Vec::new()
    }

    fn modules(&self) -> ModuleList {
        self.0.clone()
    }
}
