//! What the blocks of a recording stand for, if it does not have them all.

use stackweave_recording::ProcessRecording;

/// How many bytes there are to one that was chosen; `None` if every block is there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sampling {
    every: Option<f64>,
}

impl Sampling {
    /// That which the recorder says.
    pub(crate) fn of(process: &ProcessRecording) -> Self {
        let options = &process.start().options;
        let every = options.iter().find(|(name, _)| name == "memory.sample_every");
        let every = every.and_then(|(_, value)| value.parse::<f64>().ok());
        Self { every: every.filter(|every| *every >= 1.0) }
    }

    /// How many bytes and blocks a block of this size stands for: as many as are chosen as rarely as it.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is an estimate"
    )]
    pub(crate) fn stands_for(self, size: u64) -> (u64, u64) {
        let Some(every) = self.every else { return (size, 1) };
        let blocks = 1.0 / -(-(size.max(1) as f64) / every).exp_m1();
        ((size as f64 * blocks).round() as u64, blocks.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_blocks_stand_for_many_and_large_ones_for_themselves() {
        assert_eq!(Sampling::default().stands_for(7), (7, 1));
        let sampling = Sampling { every: Some(1000.0) };
        assert_eq!(sampling.stands_for(1_000_000), (1_000_000, 1));
        assert_eq!(sampling.stands_for(1), (1001, 1001));
        assert_eq!(sampling.stands_for(0), (0, 1001));
        assert_eq!(sampling.stands_for(1000), (1582, 2));
    }
}
