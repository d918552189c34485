//! The scale of sampled blocks.

use stackweave_recording::ProcessRecording;

/// The mean number of bytes per sampled block; `None` if every block is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sampling {
    every: Option<f64>,
}

impl Sampling {
    /// Returns the sampling of the recorder.
    pub(crate) fn of(process: &ProcessRecording) -> Self {
        let options = &process.start().options;
        let every = options.iter().find(|(name, _)| name == "memory.sample_every");
        let every = every.and_then(|(_, value)| value.parse::<f64>().ok());
        Self { every: every.filter(|every| *every >= 1.0) }
    }

    /// Returns how many bytes and blocks a sampled block of this size stands for, by the probability of sampling it.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the result is an estimate"
    )]
    pub(crate) fn scaled(self, size: u64) -> (u64, u64) {
        let Some(every) = self.every else { return (size, 1) };
        let blocks = 1.0 / -(-(size.max(1) as f64) / every).exp_m1();
        ((size as f64 * blocks).round() as u64, blocks.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_blocks_stand_for_many_and_large_blocks_for_one() {
        assert_eq!(Sampling::default().scaled(7), (7, 1));
        let sampling = Sampling { every: Some(1000.0) };
        assert_eq!(sampling.scaled(1_000_000), (1_000_000, 1));
        assert_eq!(sampling.scaled(1), (1001, 1001));
        assert_eq!(sampling.scaled(0), (0, 1001));
        assert_eq!(sampling.scaled(1000), (1582, 2));
    }
}
