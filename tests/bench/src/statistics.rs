//! What is said of many samples.

/// Samples of one thing, in the order in which they were taken. Never empty.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Of what was measured; none where nothing was.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Samples> {
        let values: Vec<f64> = values.into_iter().collect();
        (!values.is_empty()).then_some(Samples(values))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        match sorted.len() % 2 {
            1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        }
    }

    /// The smallest sample that at least so many percent are not above.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let sorted = self.sorted();
        let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
        sorted[rank.clamp(1, sorted.len()) - 1]
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

/// Each of one less that of the other in the same round.
pub(crate) fn differences(of: &[f64], less: &[f64]) -> Option<Samples> {
    Samples::of(of.iter().zip(less).map(|(of, less)| of - less))
}

/// Does something with each subject once a round, and gives what came of it, subject by
/// subject. Each round begins with another one, so that none always follows the same.
pub(crate) fn interleaved<S: Copy, T, E>(
    rounds: usize,
    subjects: &[S],
    mut measure: impl FnMut(S) -> Result<T, E>,
) -> Result<Vec<Vec<T>>, E> {
    let mut found: Vec<Vec<T>> = subjects.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..subjects.len() {
            let at = (round + turn) % subjects.len();
            found[at].push(measure(subjects[at])?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples::of(values.iter().copied()).expect("some")
    }

    #[test]
    fn a_median_is_the_middle_or_between_the_two() {
        assert_eq!(samples(&[3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(samples(&[4.0, 1.0, 3.0, 2.0]).median(), 2.5);
        assert_eq!(samples(&[7.0]).median(), 7.0);
    }

    #[test]
    fn percentiles_are_samples() {
        let hundred = samples(&(1..=100).rev().map(f64::from).collect::<Vec<_>>());
        assert_eq!(hundred.percentile(50.0), 50.0);
        assert_eq!(hundred.percentile(95.0), 95.0);
        assert_eq!(hundred.percentile(100.0), 100.0);
        assert_eq!(hundred.percentile(0.0), 1.0);
        assert_eq!(samples(&[5.0, 9.0]).percentile(99.0), 9.0);
    }

    #[test]
    fn extremes_and_count() {
        let three = samples(&[2.0, -1.0, 5.0]);
        assert_eq!((three.min(), three.max(), three.count()), (-1.0, 5.0, 3));
    }

    #[test]
    fn nothing_has_no_median() {
        assert_eq!(Samples::of([]), None);
        assert_eq!(differences(&[], &[1.0]), None);
    }

    #[test]
    fn differences_are_within_a_round() {
        assert_eq!(differences(&[3.0, 5.0], &[1.0, 1.5]), Samples::of([2.0, 3.5]));
    }

    #[test]
    fn every_round_begins_with_another_subject() {
        let mut order = String::new();
        let found = interleaved(3, &['a', 'b', 'c'], |subject| {
            order.push(subject);
            Ok::<_, ()>(order.len())
        });
        assert_eq!(order, "abcbcacab");
        assert_eq!(found, Ok(vec![vec![1, 6, 8], vec![2, 4, 9], vec![3, 5, 7]]));
    }
}
