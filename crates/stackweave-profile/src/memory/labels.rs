//! The names of allocators and tags, without duplicates.

use std::collections::HashMap;
use std::sync::Arc;

use stackweave_recording::file::Dictionary;

use crate::word_hash::WordMap;

/// Texts by number; 0 is none.
#[derive(Clone, Debug)]
pub(super) struct LabelTexts {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
    /// By frame.
    of_frames: WordMap<u32, u32>,
}

impl Default for LabelTexts {
    fn default() -> Self {
        Self { texts: vec!["".into()], numbers: HashMap::new(), of_frames: WordMap::default() }
    }
}

impl LabelTexts {
    #[expect(clippy::cast_possible_truncation, reason = "that many texts do not fit into memory")]
    pub(super) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let (text, number): (Arc<str>, u32) = (text.into(), self.texts.len() as u32);
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    /// Returns the number of a frame's name; 0 for none.
    pub(super) fn of_frame(&mut self, dictionary: &Dictionary, frame: u32) -> u32 {
        if frame == 0 {
            return 0;
        }
        if let Some(number) = self.of_frames.get(&frame) {
            return *number;
        }
        let number = self.number(frame_name(dictionary, frame).unwrap_or("?"));
        self.of_frames.insert(frame, number);
        number
    }

    /// Returns the text of a number.
    pub(super) fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", |text| text)
    }

    pub(super) fn into_texts(self) -> Vec<Arc<str>> {
        self.texts
    }
}

/// Returns the name of a frame, if the recording has it.
pub(super) fn frame_name(dictionary: &Dictionary, frame: u32) -> Option<&str> {
    dictionary.string(dictionary.names(frame).first()?.name)
}
