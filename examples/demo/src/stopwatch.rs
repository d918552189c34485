//! Two captures timed by turns, so that a busy machine slows both alike.

use std::time::Instant;

/// What one capture costs.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The median over the rounds.
    pub ns_per_capture: f64,
    /// How many frames the timed captures saw.
    pub frames: u32,
}

impl Cost {
    /// The median, shared among the frames.
    pub fn ns_per_frame(self) -> f64 {
        self.ns_per_capture / f64::from(self.frames)
    }
}

/// Times both captures, `calls` times each by turns, for `rounds` rounds. A capture returns its number of frames.
pub fn interleaved_costs(rounds: u32, calls: u32, captures: [&mut dyn FnMut() -> usize; 2]) -> [Cost; 2] {
    let mut sides = captures.map(|capture| (capture, Vec::new(), 0));
    for _ in 0..rounds {
        for (capture, ns, frames) in &mut sides {
            let start = Instant::now();
            for _ in 0..calls {
                *frames = capture();
            }
            ns.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls));
        }
    }
    sides.map(|(_, ns, frames)| Cost { ns_per_capture: median(ns), frames: u32::try_from(frames).unwrap_or(u32::MAX) })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_whatever_the_order() {
        assert!((median(vec![9.0, 1.0, 5.0]) - 5.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn both_sides_are_called_equally_often() {
        let (mut first, mut second) = (0, 0);
        let costs = interleaved_costs(
            3,
            4,
            [
                &mut || {
                    first += 1;
                    7
                },
                &mut || {
                    second += 1;
                    9
                },
            ],
        );
        assert_eq!((first, second), (12, 12));
        assert_eq!(costs.map(|cost| cost.frames), [7, 9]);
    }
}
