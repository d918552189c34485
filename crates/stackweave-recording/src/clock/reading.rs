//! The clock of a recording, as it is read while recording.
//!
//! It is the processor's counter where that is reliable: 2 to 3 times cheaper than the system's clock, which is then read only
//! at points some seconds apart. From them [`ClockTimeline`](super::ClockTimeline) converts ticks to nanoseconds.
//!
//! Hot file: [`Clock::ticks`] and [`Clock::point`] neither allocate nor lock, and are async-signal-safe.

use std::time::Duration;
use std::{env, fs, thread};

use super::{ClockPoint, ClockSource, counter, residual_ns};

const CLOCK_VARIABLE: &str = "STACKWEAVE_CLOCK";
const KERNEL_CHOICE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// The narrowest of these readings becomes the point.
const READINGS: usize = 50;
/// A counter whose deviation between two threads, over 2 ms, exceeds this is not used.
const TRUSTED_NS: u64 = 5_000;
const RATE_MEASURED_NS: u64 = 30_000;

/// Counts ticks from its base on.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: ClockSource,
    base: u64,
}

impl Clock {
    /// Starts the best clock that this machine has, and returns it with a point at its base, which is now.
    /// `STACKWEAVE_CLOCK=monotonic` in the environment forces the system's clock.
    pub fn start() -> (Self, ClockPoint) {
        Self::start_with(choose())
    }

    /// Does the same with a given source.
    pub fn start_with(source: ClockSource) -> (Self, ClockPoint) {
        let point = Self { source, base: 0 }.point();
        (Self { source, base: point.ticks }, ClockPoint { ticks: 0, ..point })
    }

    /// Returns the ticks since the base; 0 before it.
    #[inline]
    pub fn ticks(&self) -> u64 {
        self.raw().saturating_sub(self.base)
    }

    /// Returns the clock that the ticks are of.
    pub const fn source(&self) -> ClockSource {
        self.source
    }

    /// Returns the raw value that [`Clock::ticks`] counts from.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Reads this clock, the system's and the wall clock as close together as possible.
    pub fn point(&self) -> ClockPoint {
        let mut best = ClockReading::take(self);
        for _ in 1..READINGS {
            let reading = ClockReading::take(self);
            if reading.width() < best.width() {
                best = reading;
            }
        }
        let (middle, wall) = (system_ns(libc::CLOCK_MONOTONIC), system_ns(libc::CLOCK_REALTIME));
        let wall = i64::try_from(wall).unwrap_or(i64::MAX);
        let since = i64::try_from(middle.saturating_sub(best.monotonic)).unwrap_or(0);
        ClockPoint {
            ticks: (best.before + best.width() / 2).saturating_sub(self.base),
            monotonic_ns: best.monotonic,
            wall_ns: wall.saturating_sub(since),
            width_ns: u32::try_from(best.width_ns).unwrap_or(u32::MAX),
        }
    }

    /// Measures the ticks per second for some microseconds. The points of a recording give a more exact rate.
    pub fn ticks_per_second(&self) -> u64 {
        let first = self.point();
        loop {
            let last = self.point();
            let nanoseconds = last.monotonic_ns.saturating_sub(first.monotonic_ns);
            if nanoseconds >= RATE_MEASURED_NS {
                return last.ticks.saturating_sub(first.ticks).saturating_mul(1_000_000_000) / nanoseconds;
            }
        }
    }

    #[inline]
    fn raw(&self) -> u64 {
        match self.source {
            ClockSource::Tsc => counter::read(),
            ClockSource::Monotonic => system_ns(libc::CLOCK_MONOTONIC),
        }
    }
}

/// The system's clock between two readings of the recording's clock.
struct ClockReading {
    before: u64,
    after: u64,
    monotonic: u64,
    width_ns: u64,
}

impl ClockReading {
    fn take(clock: &Clock) -> Self {
        if clock.source == ClockSource::Monotonic {
            let now = system_ns(libc::CLOCK_MONOTONIC);
            return Self { before: now, after: now, monotonic: now, width_ns: 0 };
        }
        let outer = system_ns(libc::CLOCK_MONOTONIC);
        let before = counter::read();
        let monotonic = system_ns(libc::CLOCK_MONOTONIC);
        let after = counter::read();
        Self { before, after, monotonic, width_ns: monotonic.saturating_sub(outer) }
    }

    const fn width(&self) -> u64 {
        self.after.saturating_sub(self.before)
    }
}

/// Reads one of the system's clocks, in nanoseconds. Async-signal-safe.
fn system_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for a write of the time; the clocks that callers name exist on every system.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.wrapping_mul(1_000_000_000).wrapping_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

fn choose() -> ClockSource {
    if env::var_os(CLOCK_VARIABLE).is_some_and(|value| value == "monotonic") || !counter::is_invariant() {
        return ClockSource::Monotonic;
    }
    let trusted =
        fs::read_to_string(KERNEL_CHOICE).map_or_else(|_| agrees_with_the_system(), |name| name.trim() == "tsc");
    if trusted { ClockSource::Tsc } else { ClockSource::Monotonic }
}

/// Returns whether three points, the middle one read on another thread, are on a line. Takes some milliseconds.
fn agrees_with_the_system() -> bool {
    let clock = Clock { source: ClockSource::Tsc, base: 0 };
    let pause = || thread::sleep(Duration::from_millis(1));
    let first = clock.point();
    pause();
    let Ok(middle) = thread::spawn(move || clock.point()).join() else { return false };
    pause();
    let last = clock.point();
    let forward = first.ticks < middle.ticks && middle.ticks < last.ticks;
    forward && residual_ns(&first, &middle, &last) <= TRUSTED_NS
}

#[cfg(test)]
mod tests {
    use super::super::ClockTimeline;
    use super::*;

    /// Returns both sources where the machine has both.
    fn sources() -> Vec<ClockSource> {
        let mut sources = vec![ClockSource::Monotonic];
        sources.extend(counter::is_invariant().then_some(ClockSource::Tsc));
        sources
    }

    #[test]
    fn the_line_through_two_points_follows_the_system_clock() {
        for source in sources() {
            let (clock, first) = Clock::start_with(source);
            assert_eq!((clock.source(), first.ticks), (source, 0));
            let mut checks = Vec::new();
            for _ in 0..20 {
                thread::sleep(Duration::from_millis(1));
                let (before, ticks) = (system_ns(libc::CLOCK_MONOTONIC), clock.ticks());
                checks.push((before, ticks, system_ns(libc::CLOCK_MONOTONIC)));
            }
            let line = ClockTimeline::new(&[first, clock.point()], 0, 0);
            for (before, ticks, after) in checks {
                let ours = line.monotonic_ns(line.nanoseconds(ticks));
                // Preemption during all readings of a point shifts it, on a busy machine, by at most this.
                let slack = 200_000;
                assert!(before <= ours + slack && ours <= after + slack, "{source:?}: {before} {ours} {after}");
            }
        }
    }

    #[test]
    fn ticks_do_not_go_back() {
        for source in sources() {
            let (clock, _) = Clock::start_with(source);
            let ticks: Vec<u64> = (0..10_000).map(|_| clock.ticks()).collect();
            assert!(ticks.is_sorted() && ticks[9_999] > 0);
        }
    }

    #[test]
    fn the_wall_clock_agrees_with_the_system() {
        let (_, point) = Clock::start();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let off = i128::from(point.wall_ns) - i128::try_from(now.as_nanos()).unwrap();
        assert!(off.abs() < 60_000_000_000, "{off}");
    }

    #[test]
    fn the_system_clock_ticks_in_nanoseconds() {
        let (clock, _) = Clock::start_with(ClockSource::Monotonic);
        assert_eq!(clock.ticks_per_second(), 1_000_000_000);
    }
}
