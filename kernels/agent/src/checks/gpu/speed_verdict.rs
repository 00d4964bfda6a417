//! What a measured speed means: normal, slow, throttled or suspect, and why.
//!
//! Pure. Speed only warns: a shared, throttled or sliced GPU does not make a broken image.

use envforge_protocol::SpeedSource;

/// Below this part of the model's peak, or of what was recorded on this host, a speed is not normal.
const OF_PEAK: f64 = 0.5;
const OF_RECORDED: f64 = 0.9;
/// No GPU is so much faster than its peak; clocks above the reference are a tenth at most.
const IMPOSSIBLE: f64 = 1.5;
/// Tries that differ by more than this part of the median were disturbed.
const UNSTEADY: f64 = 0.25;

/// Of fewer tries than these the best and the worst count.
const FEW: usize = 5;

/// Several tries of one piece of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tries {
    pub(super) median: f64,
    pub(super) best: f64,
    /// The second best and the second worst: on an idle H100 some of nine tries were half as fast as the others.
    pub(super) inner: [f64; 2],
}

impl Tries {
    /// Of the rates of an odd number of tries.
    pub(super) fn of(rates: &[f64]) -> Self {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        let dropped = usize::from(sorted.len() >= FEW);
        let inner = [sorted[last - dropped], sorted[dropped]];
        Self { median: sorted[sorted.len() / 2], best: sorted[last], inner }
    }

    /// The difference between the second best and the second worst, as a part of the median.
    pub(super) fn spread(self) -> f64 {
        let [high, low] = self.inner;
        if self.median > 0.0 { (high - low) / self.median } else { 0.0 }
    }
}

/// A speed to compare with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Due {
    pub(super) source: SpeedSource,
    pub(super) speed: f64,
    /// Whether no right measurement exceeds it: a switch that adds up may make collectives faster than their links.
    pub(super) is_limit: bool,
}

impl Due {
    /// What it is, for people.
    pub(super) fn words(self) -> &'static str {
        match self.source {
            SpeedSource::Peak => "this model's peak",
            SpeedSource::Recorded => "the speed recorded on this host",
        }
    }

    fn least(self) -> f64 {
        if self.source == SpeedSource::Peak { OF_PEAK } else { OF_RECORDED }
    }
}

/// The verdict on a speed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SpeedVerdict {
    /// As fast as can be expected.
    Normal,
    /// Slower than can be expected, for a reason that the GPU does not tell.
    Slow(String),
    /// Slower than can be expected, and the GPU tells what holds its clocks down.
    Throttled(String),
    /// The measurement itself is in doubt.
    Suspect(String),
}

impl SpeedVerdict {
    /// The word of the report.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Slow(_) => "slow",
            Self::Throttled(_) => "throttled",
            Self::Suspect(_) => "suspect",
        }
    }

    /// The reason, if it is not normal.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Normal => None,
            Self::Slow(reason) | Self::Throttled(reason) | Self::Suspect(reason) => Some(reason),
        }
    }
}

/// Judges a speed; `None`: there is nothing to compare with, and the tries agree.
pub(super) fn verdict(tries: Tries, due: &[Due], throttled: &[&str]) -> Option<SpeedVerdict> {
    let percent = |part: f64| format!("{:.0} %", part * 100.0);
    if let Some(limit) = due.iter().find(|due| due.is_limit && tries.median > due.speed * IMPOSSIBLE) {
        let part = percent(tries.median / limit.speed);
        return Some(SpeedVerdict::Suspect(format!(
            "{part} of {}: not all of the work was done",
            limit.words()
        )));
    }
    let missed = due.iter().find(|due| tries.median < due.speed * due.least());
    let below = missed.map(|due| format!("below {} of {}", percent(due.least()), due.words()));
    let unsteady = tries.spread() > UNSTEADY;
    let spread = format!("tries differ by {}: another program may use the GPU", percent(tries.spread()));
    match below {
        Some(below) if !throttled.is_empty() => {
            Some(SpeedVerdict::Throttled(format!("{below}; clocks reduced by {}", throttled.join(", "))))
        }
        Some(below) if unsteady => Some(SpeedVerdict::Suspect(format!("{below}; {spread}"))),
        Some(below) => Some(SpeedVerdict::Slow(below)),
        None if unsteady => Some(SpeedVerdict::Suspect(spread)),
        None if due.is_empty() => None,
        None => Some(SpeedVerdict::Normal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peak(speed: f64) -> Due {
        Due { source: SpeedSource::Peak, speed, is_limit: true }
    }

    fn recorded(speed: f64) -> Due {
        Due { source: SpeedSource::Recorded, speed, is_limit: false }
    }

    fn steady(median: f64) -> Tries {
        Tries { median, best: median * 1.01, inner: [median * 1.01, median * 0.98] }
    }

    #[test]
    fn median_is_that_of_all_tries_and_the_spread_of_the_inner_ones() {
        let tries = Tries::of(&[3.0, 1.0, 10.0, 2.0, 4.0]);
        assert_eq!(tries, Tries { median: 3.0, best: 10.0, inner: [4.0, 2.0] });
        assert!((tries.spread() - 2.0 / 3.0).abs() < 1e-9);
        assert!(Tries::of(&[0.0]).spread() < 1e-9);
        assert!((Tries::of(&[1.0, 2.0, 4.0]).spread() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn one_disturbed_try_is_no_doubt_and_three_are() {
        let one = Tries::of(&[33.9, 54.0, 54.1, 54.0, 54.4, 53.9, 54.0, 54.2, 54.0]);
        assert_eq!(verdict(one, &[peak(63.0)], &[]), Some(SpeedVerdict::Normal));
        let three = Tries::of(&[33.9, 30.0, 54.1, 54.0, 25.0, 53.9, 54.0, 54.2, 54.0]);
        assert_eq!(verdict(three, &[peak(63.0)], &[]).as_ref().map(SpeedVerdict::word), Some("suspect"));
    }

    #[test]
    fn words_follow_from_peak_record_spread_and_clocks() {
        /// Tries, what to compare with, why clocks are reduced; the word, and how its reason begins.
        type Case<'a> = (Tries, &'a [Due], &'a [&'a str], Option<&'a str>, &'a str);
        let cases: [Case<'_>; 11] = [
            (steady(600.0), &[peak(989.0)], &[], Some("normal"), ""),
            (steady(600.0), &[peak(989.0)], &["power limit"], Some("normal"), ""),
            (steady(400.0), &[peak(989.0)], &[], Some("slow"), "below 50 % of this model's peak"),
            (
                steady(400.0),
                &[peak(989.0)],
                &["power limit", "power brake"],
                Some("throttled"),
                "below 50 % of this model's peak; clocks reduced by power limit, power brake",
            ),
            (
                steady(600.0),
                &[peak(989.0), recorded(700.0)],
                &[],
                Some("slow"),
                "below 90 % of the speed recorded",
            ),
            (steady(640.0), &[recorded(700.0)], &[], Some("normal"), ""),
            (
                steady(1600.0),
                &[peak(989.0)],
                &[],
                Some("suspect"),
                "162 % of this model's peak: not all of the work",
            ),
            (steady(1600.0), &[recorded(700.0)], &[], Some("normal"), ""),
            (
                Tries { median: 400.0, best: 700.0, inner: [700.0, 300.0] },
                &[peak(989.0)],
                &[],
                Some("suspect"),
                "below 50 % of this model's peak; tries differ by 100 %",
            ),
            (
                Tries { median: 600.0, best: 700.0, inner: [700.0, 300.0] },
                &[],
                &[],
                Some("suspect"),
                "tries differ by 67 %",
            ),
            (steady(600.0), &[], &["power limit"], None, ""),
        ];
        for (tries, due, throttled, word, reason) in cases {
            let found = verdict(tries, due, throttled);
            assert_eq!(found.as_ref().map(SpeedVerdict::word), word, "{tries:?} {due:?}");
            let text = found.as_ref().and_then(SpeedVerdict::reason).unwrap_or_default();
            assert!(text.starts_with(reason) && text.is_empty() == reason.is_empty(), "{text}");
        }
    }

    #[test]
    fn collective_may_be_faster_than_its_links() {
        let links = Due { is_limit: false, ..peak(450.0) };
        assert_eq!(verdict(steady(700.0), &[links], &[]), Some(SpeedVerdict::Normal));
    }
}
