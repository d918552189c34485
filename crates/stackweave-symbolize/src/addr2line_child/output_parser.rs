//! Parses the output of addr2line: an address, then pairs of lines with a name and a location, innermost first.

use crate::resolved::ResolvedFrame;

use super::error::ChildError;

/// The address that is queried last, to mark the end of the output. It is in no file.
pub(super) const END_ADDRESS: u64 = u64::MAX;
/// The maximum length of a line: C++ names can be long.
const MAX_LINE: usize = 4 << 20;
/// The maximum length of the quotation of an invalid line.
const MAX_QUOTE: usize = 80;

/// Parses the output in parts, and assembles the frames.
#[derive(Debug)]
pub(super) struct OutputParser<'a> {
    /// The queried addresses.
    addresses: &'a [u64],
    chains: Vec<Vec<ResolvedFrame>>,
    /// The beginning of an incomplete line.
    unfinished: Vec<u8>,
    state: ParserState,
}

#[derive(Debug)]
enum ParserState {
    /// Expects an address or, after the first, a name.
    AddressOrName,
    /// Expects the location of the function with this name.
    Place(String),
    /// Expects the name, then the location, of the end mark.
    LastName,
    LastPlace,
    Complete,
}

impl<'a> OutputParser<'a> {
    pub(super) fn new(addresses: &'a [u64]) -> Self {
        let chains = Vec::with_capacity(addresses.len());
        Self { addresses, chains, unfinished: Vec::new(), state: ParserState::AddressOrName }
    }

    /// Parses a part of the output. Returns whether it was the last.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<bool, ChildError> {
        while let Some(newline) = bytes.iter().position(|&byte| byte == b'\n') {
            self.unfinished.extend_from_slice(&bytes[..newline]);
            let line = std::mem::take(&mut self.unfinished);
            self.line(String::from_utf8_lossy(&line).trim_end())?;
            bytes = &bytes[newline + 1..];
        }
        self.unfinished.extend_from_slice(bytes);
        if self.unfinished.len() > MAX_LINE {
            return Err(invalid_output(&String::from_utf8_lossy(&self.unfinished[..MAX_QUOTE])));
        }
        Ok(matches!(self.state, ParserState::Complete))
    }

    /// Returns the frames of each address.
    pub(super) fn into_chains(self) -> Vec<Vec<ResolvedFrame>> {
        self.chains.into_iter().map(finish_chain).collect()
    }

    fn line(&mut self, line: &str) -> Result<(), ChildError> {
        let state = std::mem::replace(&mut self.state, ParserState::AddressOrName);
        match state {
            ParserState::AddressOrName => match parse_address(line) {
                Some(address) => self.state = self.address(address).ok_or_else(|| invalid_output(line))?,
                None if self.chains.is_empty() => return Err(invalid_output(line)),
                None => self.state = ParserState::Place(line.to_owned()),
            },
            ParserState::Place(function) => {
                let frame = parse_frame(&function, line).ok_or_else(|| invalid_output(line))?;
                self.chains.last_mut().ok_or_else(|| invalid_output(line))?.push(frame);
            }
            ParserState::LastName => self.state = ParserState::LastPlace,
            ParserState::LastPlace => self.state = ParserState::Complete,
            ParserState::Complete => return Err(invalid_output(line)),
        }
        Ok(())
    }

    /// Begins the frames of an address, which must be the next queried one.
    fn address(&mut self, address: u64) -> Option<ParserState> {
        match self.addresses.get(self.chains.len()) {
            Some(&due) if due == address => {
                self.chains.push(Vec::new());
                Some(ParserState::AddressOrName)
            }
            None if address == END_ADDRESS => Some(ParserState::LastName),
            _ => None,
        }
    }
}

fn parse_address(line: &str) -> Option<u64> {
    let digits = line.strip_prefix("0x")?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok())?
}

fn parse_frame(function: &str, place: &str) -> Option<ResolvedFrame> {
    let place = place.find(" (discriminator ").map_or(place, |end| &place[..end]);
    let (file, line) = place.rsplit_once(':')?;
    let line = match line {
        "?" => 0,
        number => number.parse::<u32>().ok()?,
    };
    Some(ResolvedFrame {
        function: function.into(),
        file: (!matches!(file, "" | "??")).then(|| file.into()),
        line: (line > 0).then_some(line),
        column: None,
        is_inlined: true,
    })
}

/// Marks all frames but the last as inlined. Frames without any name are dropped.
fn finish_chain(mut chain: Vec<ResolvedFrame>) -> Vec<ResolvedFrame> {
    if chain.iter().all(|frame| matches!(&*frame.function, "" | "??")) {
        return Vec::new();
    }
    if let Some(outermost) = chain.last_mut() {
        outermost.is_inlined = false;
    }
    chain
}

fn invalid_output(line: &str) -> ChildError {
    ChildError::InvalidOutput(line.chars().take(MAX_QUOTE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "0x0000000000001158\ninner\n/a b/x.cpp:2 (discriminator 3)\nn::outer(int)\nC:/x.cpp:3\n\
        0x2\n??\n??:0\n0x3\nf\n:?\n0xffffffffffffffff\n_end\n??:0\n";

    fn frame(function: &str, file: Option<&str>, line: Option<u32>, is_inlined: bool) -> ResolvedFrame {
        ResolvedFrame { function: function.into(), file: file.map(Into::into), line, column: None, is_inlined }
    }

    fn read(addresses: &[u64], output: &str) -> Result<bool, ChildError> {
        OutputParser::new(addresses).take(output.as_bytes())
    }

    #[test]
    fn output_may_come_in_any_parts() {
        let expected = vec![
            vec![
                frame("inner", Some("/a b/x.cpp"), Some(2), true),
                frame("n::outer(int)", Some("C:/x.cpp"), Some(3), false),
            ],
            vec![],
            vec![frame("f", None, None, false)],
        ];
        for size in 1..OUTPUT.len() {
            let mut parser = OutputParser::new(&[0x1158, 2, 3]);
            let pieces = OUTPUT.as_bytes().chunks(size);
            let ended: Vec<bool> = pieces.map(|piece| parser.take(piece).unwrap()).collect();
            assert_eq!(ended.iter().position(|&is_complete| is_complete), Some(ended.len() - 1));
            assert_eq!(parser.into_chains(), expected);
        }
    }

    #[test]
    fn unexpected_lines_are_invalid() {
        for output in ["hello\n", "0x2\n", "0x1\nf\nno place\n", "0x1\nf\n??:0\n0x1\n", "0x1\nf\nx.c:12a\n", "0x\n"] {
            assert!(matches!(read(&[1], output), Err(ChildError::InvalidOutput(_))), "{output:?}");
        }
        assert_eq!(read(&[1], "0x1\nf\n??:0\n"), Ok(false));
        let endless = "x".repeat(MAX_LINE + 1);
        assert_eq!(read(&[1], &endless), Err(ChildError::InvalidOutput("x".repeat(MAX_QUOTE))));
    }

    #[test]
    fn random_output_is_harmless() {
        let mut random = 7_u32;
        let alphabet = b"0x1f?:\n\nab 9";
        for _ in 0..5000 {
            let mut next = || {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                alphabet[(random >> 16) as usize % alphabet.len()]
            };
            let output: Vec<u8> = b"0x1\n".iter().copied().chain((0..60).map(|_| next())).collect();
            let _ = OutputParser::new(&[1, 0xf]).take(&output);
        }
    }
}
