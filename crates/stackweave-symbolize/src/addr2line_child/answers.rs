//! The output of addr2line: an address, then pairs of lines with a name and a place, innermost first.

use crate::resolved::Frame;

use super::error::ChildError;

/// The address that is asked for last, so that the end of the answers is known. It is in no file.
pub(super) const END_MARK: u64 = u64::MAX;
/// The longest line: C++ names can be long.
const MAX_LINE: usize = 4 << 20;
/// How much of a line of nonsense is quoted.
const MAX_QUOTE: usize = 80;

/// Takes the output in pieces and puts the frames together.
#[derive(Debug)]
pub(super) struct Answers<'a> {
    /// The addresses that were asked for.
    asked: &'a [u64],
    chains: Vec<Vec<Frame>>,
    /// The beginning of a line.
    unfinished: Vec<u8>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// An address or, after the first, a name is next.
    AddressOrName,
    /// The place of the function of this name is next.
    Place(String),
    /// The name, then the place, of the end mark are next.
    LastName,
    LastPlace,
    Whole,
}

impl<'a> Answers<'a> {
    pub(super) fn new(asked: &'a [u64]) -> Self {
        let chains = Vec::with_capacity(asked.len());
        Self { asked, chains, unfinished: Vec::new(), state: State::AddressOrName }
    }

    /// Takes a piece of output: whether that was the last.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<bool, ChildError> {
        while let Some(newline) = bytes.iter().position(|&byte| byte == b'\n') {
            self.unfinished.extend_from_slice(&bytes[..newline]);
            let line = std::mem::take(&mut self.unfinished);
            self.line(String::from_utf8_lossy(&line).trim_end())?;
            bytes = &bytes[newline + 1..];
        }
        self.unfinished.extend_from_slice(bytes);
        if self.unfinished.len() > MAX_LINE {
            return Err(nonsense(&String::from_utf8_lossy(&self.unfinished[..MAX_QUOTE])));
        }
        Ok(matches!(self.state, State::Whole))
    }

    /// The frames of each address.
    pub(super) fn into_chains(self) -> Vec<Vec<Frame>> {
        self.chains.into_iter().map(finish_chain).collect()
    }

    fn line(&mut self, line: &str) -> Result<(), ChildError> {
        let state = std::mem::replace(&mut self.state, State::AddressOrName);
        match state {
            State::AddressOrName => match parse_address(line) {
                Some(address) => self.state = self.address(address).ok_or_else(|| nonsense(line))?,
                None if self.chains.is_empty() => return Err(nonsense(line)),
                None => self.state = State::Place(line.to_owned()),
            },
            State::Place(function) => {
                let frame = parse_frame(&function, line).ok_or_else(|| nonsense(line))?;
                self.chains.last_mut().ok_or_else(|| nonsense(line))?.push(frame);
            }
            State::LastName => self.state = State::LastPlace,
            State::LastPlace => self.state = State::Whole,
            State::Whole => return Err(nonsense(line)),
        }
        Ok(())
    }

    /// Begins the answer for an address, which must be the one that is due.
    fn address(&mut self, address: u64) -> Option<State> {
        match self.asked.get(self.chains.len()) {
            Some(&due) if due == address => {
                self.chains.push(Vec::new());
                Some(State::AddressOrName)
            }
            None if address == END_MARK => Some(State::LastName),
            _ => None,
        }
    }
}

fn parse_address(line: &str) -> Option<u64> {
    let digits = line.strip_prefix("0x")?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok())?
}

fn parse_frame(function: &str, place: &str) -> Option<Frame> {
    let place = place.find(" (discriminator ").map_or(place, |end| &place[..end]);
    let (file, line) = place.rsplit_once(':')?;
    let line = match line {
        "?" => 0,
        number => number.parse::<u32>().ok()?,
    };
    Some(Frame {
        function: function.into(),
        file: (!matches!(file, "" | "??")).then(|| file.into()),
        line: (line > 0).then_some(line),
        column: None,
        is_inlined: true,
    })
}

/// All frames but the last were inlined. Frames of which none has a name are none.
fn finish_chain(mut chain: Vec<Frame>) -> Vec<Frame> {
    if chain.iter().all(|frame| matches!(&*frame.function, "" | "??")) {
        return Vec::new();
    }
    if let Some(outermost) = chain.last_mut() {
        outermost.is_inlined = false;
    }
    chain
}

fn nonsense(line: &str) -> ChildError {
    ChildError::Nonsense(line.chars().take(MAX_QUOTE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "0x0000000000001158\ninner\n/a b/x.cpp:2 (discriminator 3)\nn::outer(int)\nC:/x.cpp:3\n\
        0x2\n??\n??:0\n0x3\nf\n:?\n0xffffffffffffffff\n_end\n??:0\n";

    fn frame(function: &str, file: Option<&str>, line: Option<u32>, is_inlined: bool) -> Frame {
        Frame { function: function.into(), file: file.map(Into::into), line, column: None, is_inlined }
    }

    fn read(asked: &[u64], output: &str) -> Result<bool, ChildError> {
        Answers::new(asked).take(output.as_bytes())
    }

    #[test]
    fn output_may_come_in_any_pieces() {
        let expected = vec![
            vec![
                frame("inner", Some("/a b/x.cpp"), Some(2), true),
                frame("n::outer(int)", Some("C:/x.cpp"), Some(3), false),
            ],
            vec![],
            vec![frame("f", None, None, false)],
        ];
        for size in 1..OUTPUT.len() {
            let mut answers = Answers::new(&[0x1158, 2, 3]);
            let pieces = OUTPUT.as_bytes().chunks(size);
            let ended: Vec<bool> = pieces.map(|piece| answers.take(piece).unwrap()).collect();
            assert_eq!(ended.iter().position(|&is_whole| is_whole), Some(ended.len() - 1));
            assert_eq!(answers.into_chains(), expected);
        }
    }

    #[test]
    fn what_is_out_of_step_is_nonsense() {
        for output in ["hello\n", "0x2\n", "0x1\nf\nno place\n", "0x1\nf\n??:0\n0x1\n", "0x1\nf\nx.c:12a\n", "0x\n"] {
            assert!(matches!(read(&[1], output), Err(ChildError::Nonsense(_))), "{output:?}");
        }
        assert_eq!(read(&[1], "0x1\nf\n??:0\n"), Ok(false));
        let endless = "x".repeat(MAX_LINE + 1);
        assert_eq!(read(&[1], &endless), Err(ChildError::Nonsense("x".repeat(MAX_QUOTE))));
    }

    #[test]
    fn random_output_does_no_harm() {
        let mut random = 7_u32;
        let alphabet = b"0x1f?:\n\nab 9";
        for _ in 0..5000 {
            let mut next = || {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                alphabet[(random >> 16) as usize % alphabet.len()]
            };
            let output: Vec<u8> = b"0x1\n".iter().copied().chain((0..60).map(|_| next())).collect();
            let _ = Answers::new(&[1, 0xf]).take(&output);
        }
    }
}
