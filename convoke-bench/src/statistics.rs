//! Median and spread: numbers that one disturbed sample cannot move.

/// A summary of a contestant's samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    /// Half the interquartile range, in percent of the median.
    pub(crate) spread: f64,
}

/// Summarises samples, of which there must be at least one.
pub(crate) fn summarise(mut samples: Vec<f64>) -> Summary {
    samples.sort_by(f64::total_cmp);
    let median = quantile(&samples, 0.5);
    let half_range = (quantile(&samples, 0.75) - quantile(&samples, 0.25)) / 2.0;
    let spread = if median > 0.0 { 100.0 * half_range / median } else { 0.0 };
    Summary { median, spread }
}

/// Returns the value below which `share` of the sorted samples lie, interpolated between neighbours.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    below + (above - below) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_odd_number_is_the_middle_one() {
        assert_eq!(summarise(vec![9.0, 1.0, 5.0]).median, 5.0);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(summarise(vec![4.0, 1.0, 2.0, 100.0]).median, 3.0);
    }

    #[test]
    fn the_spread_is_half_the_interquartile_range_in_percent() {
        // Quartiles 20 and 40, median 30: half of 20 is 10, a third of 30.
        let summary = summarise(vec![50.0, 40.0, 30.0, 20.0, 10.0]);
        assert!((summary.spread - 100.0 / 3.0).abs() < 1e-9, "{summary:?}");
    }

    #[test]
    fn one_wild_sample_moves_neither() {
        let calm = summarise(vec![10.0, 10.0, 10.0, 10.0, 10.0]);
        assert_eq!(calm, Summary { median: 10.0, spread: 0.0 });
        assert_eq!(summarise(vec![10.0, 10.0, 10.0, 10.0, 1e9]), calm);
    }

    #[test]
    fn one_sample_has_no_spread() {
        assert_eq!(summarise(vec![7.0]), Summary { median: 7.0, spread: 0.0 });
    }

    #[test]
    fn quartiles_are_interpolated() {
        assert_eq!(quantile(&[0.0, 10.0], 0.25), 2.5);
        assert_eq!(quantile(&[0.0, 10.0, 20.0, 30.0], 0.75), 22.5);
    }
}
