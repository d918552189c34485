//! A picture of memory over time: live and resident memory, the peak, and the tags of threads.

mod draw;
mod gather;
mod line;

use std::io::Write;

use self::draw::CurvePicture;
use crate::error::ExportError;
use crate::source::Source;
use crate::svg::subject;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut panels = gather::gather(source)?;
    panels.retain(|panel| !panel.is_empty());
    if panels.is_empty() {
        return Err(ExportError::Unsupported("the recording has no memory, which this picture shows".to_owned()));
    }
    let picture = CurvePicture { title: subject(source), range: source.time_range(), panels: &panels };
    Ok(out.write_all(picture.svg().as_bytes())?)
}
