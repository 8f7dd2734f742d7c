//! Figures of several repetitions.

use std::time::Duration;

use serde_json::{Value, json};

/// The median of the repetitions, the smallest and the largest of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    pub(crate) fn new(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<_> = figures.into_iter().collect();
        assert!(!figures.is_empty(), "nothing was measured");
        figures.sort_unstable_by(f64::total_cmp);
        let middle = figures.len() / 2;
        let median = if figures.len().is_multiple_of(2) {
            f64::midpoint(figures[middle - 1], figures[middle])
        } else {
            figures[middle]
        };
        Self { median, min: figures[0], max: figures[figures.len() - 1] }
    }

    /// Only the median goes to the results file; the tables on standard output also have the smallest and the largest figure.
    pub(crate) fn json(&self) -> Value {
        json!(rounded(self.median))
    }
}

/// Six digits: no figure is repeatable to more than that.
pub(crate) fn rounded(figure: f64) -> f64 {
    format!("{figure:.5e}").parse().unwrap()
}

/// A whole number with commas.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Measured times, sorted.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        assert!(!times.is_empty(), "nothing was measured");
        times.sort_unstable();
        Self(times)
    }

    /// The time in milliseconds that so many of a thousand stay below.
    pub(crate) fn permille(&self, share: usize) -> f64 {
        milliseconds(self.0[(self.0.len() * share / 1_000).min(self.0.len() - 1)])
    }

    pub(crate) fn median(&self) -> f64 {
        self.permille(500)
    }

    pub(crate) fn p99(&self) -> f64 {
        self.permille(990)
    }
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
