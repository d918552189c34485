//! Memory over time, as a picture: what was taken, what was resident, the peak, and the tags that threads had.

mod draw;
mod gather;
mod line;

use std::io::Write;

use self::draw::Picture;
use crate::error::ExportError;
use crate::source::Source;
use crate::svg::subject;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut panels = gather::gather(source)?;
    panels.retain(|panel| !panel.is_empty());
    if panels.is_empty() {
        return Err(ExportError::NotThis("the recording has nothing about memory, which the picture is of".to_owned()));
    }
    let picture = Picture { title: subject(source), range: source.time_range(), panels: &panels };
    Ok(out.write_all(picture.svg().as_bytes())?)
}
