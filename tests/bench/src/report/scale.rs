//! Logarithmic axes.

/// Maps values between two bounds to a stretch of the picture, by their logarithms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// What is at the stretch's start, and at its end.
    values: (f64, f64),
    /// In the picture's units; the end may be before the start.
    stretch: (f64, f64),
}

impl Scale {
    /// For positive values of which the first is the smaller.
    pub(super) fn new(values: (f64, f64), stretch: (f64, f64)) -> Scale {
        Scale { values, stretch }
    }

    /// Where a value is.
    pub(super) fn at(self, value: f64) -> f64 {
        let (first, last) = self.values;
        let share = (value / first).ln() / (last / first).ln();
        self.stretch.0 + share * (self.stretch.1 - self.stretch.0)
    }

    /// The bounds.
    pub(super) fn values(self) -> (f64, f64) {
        self.values
    }
}

/// The powers of ten around all values: at least two.
pub(super) fn decades(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) = values.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), value| {
        (least.min(value), most.max(value))
    });
    let below = least.log10().floor();
    let above = most.log10().ceil().max(below + 1.0);
    (10f64.powf(below), 10f64.powf(above))
}

/// 1, 2 and 5 times each power of ten from the one bound to the other.
pub(super) fn ticks((first, last): (f64, f64)) -> Vec<f64> {
    let mut ticks = Vec::new();
    let mut power = first;
    while power <= last * 1.001 {
        ticks.extend([1.0, 2.0, 5.0].map(|step| step * power));
        power *= 10.0;
    }
    ticks.retain(|tick| *tick <= last * 1.001);
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_scale_is_the_geometric_mean() {
        let scale = Scale::new((1.0, 100.0), (200.0, 0.0));
        assert_eq!((scale.at(1.0), scale.at(100.0)), (200.0, 0.0));
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn decades_are_around_all_values() {
        assert_eq!(decades([30.0, 2000.0].into_iter()), (10.0, 10_000.0));
        assert_eq!(decades([100.0, 100.0].into_iter()), (100.0, 1000.0));
        assert_eq!(decades([0.5].into_iter()), (0.1, 1.0));
    }

    #[test]
    fn ticks_are_at_one_two_and_five() {
        assert_eq!(ticks((10.0, 100.0)), [10.0, 20.0, 50.0, 100.0]);
    }
}
