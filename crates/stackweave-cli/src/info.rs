//! `stackweave info`: what is in a recording, and whether it is whole.

use std::io::{self, BufWriter, Write};

use crate::arguments::Info;
use crate::failure::Failure;
use crate::opening::open;
use crate::{info_json, info_text};

pub(crate) fn run(arguments: &Info) -> Result<(), Failure> {
    let recording = open(&arguments.recordings)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let written =
        if arguments.json { info_json::write(&mut out, &recording) } else { info_text::write(&mut out, &recording) };
    written.and_then(|()| out.flush()).map_err(|error| Failure::output(&error))
}
