//! Finds the function of n that measurements follow: least squares over n, log₂ n and n².

use std::fmt;

/// `intercept + slope · x`, fitted by least squares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fit {
    /// How much each further x adds.
    pub slope: f64,
    /// The value at x = 0.
    pub intercept: f64,
    /// The share of the variance that the fit explains, from 0 to 1; 1 for measurements that do not
    /// vary.
    pub r2: f64,
}

impl Fit {
    /// Returns the line through these points by least squares; `None` if all points have the same
    /// x.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / count;
        let (mean_x, mean_y) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |f: &dyn Fn(f64, f64) -> f64| {
            points.iter().map(|p| f(p.0 - mean_x, p.1 - mean_y)).sum::<f64>()
        };
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        if points.is_empty() || xx == 0.0 {
            return None;
        }
        let slope = xy / xx;
        let r2 = if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) };
        Some(Self { slope, intercept: mean_y - slope * mean_x, r2 })
    }
}

/// The function of n that measurements follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// The measurements stay where they are.
    Constant,
    /// The measurements grow with log₂ n.
    Logarithmic,
    /// The measurements grow with n.
    Linear,
    /// The measurements grow with n².
    Quadratic,
    /// None of these fits well.
    Unclear,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Constant => "constant",
            Self::Logarithmic => "logarithmic",
            Self::Linear => "linear",
            Self::Quadratic => "quadratic",
            Self::Unclear => "none fits",
        })
    }
}

/// How measurements grow with n.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Growth {
    /// The fit over n.
    pub over_n: Fit,
    /// The fit over log₂ n.
    pub over_log: Fit,
    /// The fit over n².
    pub over_square: Fit,
    /// The function that the three fits point to.
    pub class: Class,
}

/// The fewest sizes for a fit: with fewer sizes every function fits.
pub const FEWEST: usize = 4;
/// A fit over n that explains less than this share does not count.
const GOOD: f64 = 0.99;
/// A fit over another function that is clearly better than the fit over n may explain a little
/// less.
const GOOD_ENOUGH: f64 = 0.95;
/// A fit over another function is clearly better if it leaves less than this share of the variance
/// that the fit over n leaves unexplained.
const CLEARLY: f64 = 0.5;
/// Measurements that vary by no more than this share of their mean stay where they are.
const STILL: f64 = 0.05;

impl Growth {
    /// Returns how the measurements `(n, references)` grow; `None` for fewer than [`FEWEST`] sizes.
    pub fn of(points: &[(usize, f64)]) -> Option<Self> {
        if points.len() < FEWEST {
            return None;
        }
        let over = |x: fn(f64) -> f64| {
            Fit::through(&points.iter().map(|p| (x(p.0 as f64), p.1)).collect::<Vec<_>>())
        };
        let (over_n, over_log, over_square) = (over(|n| n)?, over(f64::log2)?, over(|n| n * n)?);
        let mean = points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64;
        let still = points.iter().all(|p| (p.1 - mean).abs() <= STILL * mean);
        let left = |fit: Fit| 1.0 - fit.r2;
        let better = |fit: Fit, than: Fit| left(fit) < CLEARLY * left(than);
        let (r2, enough, class) = if better(over_log, over_n) && left(over_log) <= left(over_square)
        {
            (over_log.r2, GOOD_ENOUGH, Class::Logarithmic)
        } else if better(over_square, over_n) {
            (over_square.r2, GOOD_ENOUGH, Class::Quadratic)
        } else {
            (over_n.r2, GOOD, Class::Linear)
        };
        let class = match class {
            _ if still => Class::Constant,
            _ if r2 <= enough => Class::Unclear,
            class => class,
        };
        Some(Self { over_n, over_log, over_square, class })
    }

    /// Returns the fit of the class and what it is over; the fit over n if no class fits.
    pub fn best(&self) -> (Fit, &'static str) {
        match self.class {
            Class::Logarithmic => (self.over_log, "log₂ n"),
            Class::Quadratic => (self.over_square, "n²"),
            _ => (self.over_n, "n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grows(f: impl Fn(f64) -> f64) -> Class {
        let points: Vec<_> = (1..=6).map(|i| (1 << i, f(f64::from(1 << i)))).collect();
        Growth::of(&points).expect("six sizes are enough").class
    }

    #[test]
    fn a_line_is_found() {
        let fit = Fit::through(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]).expect("they lie apart");
        assert!(
            (fit.slope - 2.0).abs() < 1e-9
                && (fit.intercept - 3.0).abs() < 1e-9
                && (fit.r2 - 1.0).abs() < 1e-9
        );
        // By hand: means 2 and 3, xx = 2, xy = 1, yy = 2.
        let fit = Fit::through(&[(1.0, 3.0), (2.0, 2.0), (3.0, 4.0)]).expect("they lie apart");
        assert!(
            (fit.slope - 0.5).abs() < 1e-9
                && (fit.intercept - 2.0).abs() < 1e-9
                && (fit.r2 - 0.25).abs() < 1e-9
        );
        assert_eq!(Fit::through(&[(2.0, 1.0), (2.0, 3.0)]), None);
        assert_eq!(Fit::through(&[]), None);
    }

    #[test]
    fn classes_are_told_apart() {
        assert_eq!(grows(|n| 4.0 * n + 3.0), Class::Linear);
        assert_eq!(grows(|n| 4.0 * n + 3.0 * n.log2()), Class::Linear);
        assert_eq!(grows(|n| 11.0 * n.log2()), Class::Logarithmic);
        assert_eq!(grows(|n| n * n / 2.0 + n), Class::Quadratic);
        assert_eq!(grows(|_| 7.0), Class::Constant);
        assert_eq!(
            grows(|n| if (n.log2() as u32).is_multiple_of(2) { 9.0 } else { 1.0 }),
            Class::Unclear
        );
    }

    #[test]
    fn few_sizes_say_nothing() {
        assert_eq!(Growth::of(&[(2, 1.0), (4, 2.0), (8, 3.0)]), None);
    }
}
