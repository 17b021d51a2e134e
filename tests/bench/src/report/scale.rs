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
}

/// Every 1, 2 and 5 times a power of ten, from the last that is not above any value to the
/// first that is not below any.
pub(super) fn ticks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let (least, most) = values.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), value| {
        (least.min(value), most.max(value))
    });
    let mut ticks: Vec<f64> = Vec::new();
    let mut power = 10f64.powf(least.log10().floor());
    while ticks.last().is_none_or(|last| *last < most || ticks.len() < 2) {
        for tick in [1.0, 2.0, 5.0].map(|step| step * power) {
            match ticks.last() {
                // Still at or below the least.
                Some(_) if tick <= least => ticks = vec![tick],
                Some(last) if *last >= most && ticks.len() > 1 => {}
                _ => ticks.push(tick),
            }
        }
        power *= 10.0;
    }
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
    fn ticks_are_at_one_two_and_five_around_all_values() {
        assert_eq!(ticks([30.0, 400.0].into_iter()), [20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(ticks([20.0, 50.0].into_iter()), [20.0, 50.0]);
        assert_eq!(ticks([100.0].into_iter()), [100.0, 200.0]);
        assert_eq!(ticks([6.0, 7.0].into_iter()), [5.0, 10.0]);
        assert_eq!(ticks([9.0, 11.0].into_iter()), [5.0, 10.0, 20.0]);
    }
}
