//! Medians with their intervals, the slope between sizes, and a linear model of the cost.

use super::asking::{Asked, COUNTERS};
use super::common::{Random, Spread};

/// Samples of a bootstrap interval.
const RESAMPLES: usize = 1000;

/// The searches of one size, by build.
pub struct Size {
    pub rows: usize,
    pub builds: Vec<Vec<Asked>>,
}

impl Size {
    fn all(&self) -> Spread {
        let mut all = Spread::default();
        self.builds.iter().flatten().for_each(|asked| all.push(asked.micros));
        all
    }

    /// The median of questions drawn again from builds drawn again.
    fn resampled(&self, random: &mut Random) -> f64 {
        let mut drawn = Spread::default();
        for _ in 0..self.builds.len() {
            let build = &self.builds[random.below(self.builds.len())];
            (0..build.len()).for_each(|_| drawn.push(build[random.below(build.len())].micros));
        }
        drawn.p50()
    }
}

pub fn print_size(size: &Size) {
    let mut random = Random::new(99);
    let mut medians = Spread::default();
    (0..RESAMPLES).for_each(|_| medians.push(size.resampled(&mut random)));
    let all = size.all();
    println!(
        "{:>8} turns: p50 {:.0} us ({:.0} to {:.0}), p99 {:.0} us",
        size.rows,
        all.p50(),
        medians.at(0.025),
        medians.at(0.975),
        all.p99()
    );
}

pub fn print_slope(sizes: &[Size]) {
    let slope = |medians: &[f64]| {
        let logs = sizes.iter().map(|size| (size.rows as f64).ln());
        let points: Vec<(f64, f64)> = logs.zip(medians.iter().map(|micros| micros.ln())).collect();
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| {
            points.iter().map(of).sum::<f64>() / points.len() as f64
        };
        let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
        mean(&|point| (point.0 - x) * (point.1 - y)) / mean(&|point| (point.0 - x).powi(2))
    };
    let medians: Vec<f64> = sizes.iter().map(|size| size.all().p50()).collect();
    let mut random = Random::new(7);
    let mut slopes = Spread::default();
    for _ in 0..RESAMPLES {
        let medians: Vec<f64> = sizes.iter().map(|size| size.resampled(&mut random)).collect();
        slopes.push(slope(&medians));
    }
    println!(
        "slope of log p50 against log turns: {:.3} ({:.3} to {:.3}; goal below 0.35)",
        slope(&medians),
        slopes.at(0.025),
        slopes.at(0.975)
    );
}

/// Least squares of the time over the counters, each scaled to its mean.
pub fn print_model(sizes: &[Size]) {
    const N: usize = COUNTERS.len();
    let searches: Vec<Asked> =
        sizes.iter().flat_map(|size| size.builds.iter().flatten().copied()).collect();
    let mut scale = [0.0; N];
    for asked in &searches {
        asked.counts.iter().zip(&mut scale).for_each(|(count, sum)| *sum += count);
    }
    scale.iter_mut().for_each(|sum| *sum = (*sum / searches.len() as f64).max(1e-9));
    let scaled =
        |asked: &Asked| std::array::from_fn::<f64, N, _>(|at| asked.counts[at] / scale[at]);
    let mut matrix = [[0.0; N + 1]; N];
    for asked in &searches {
        let values = scaled(asked);
        for (row, left) in matrix.iter_mut().zip(values) {
            row.iter_mut().zip(values).for_each(|(sum, right)| *sum += left * right);
            row[N] += left * asked.micros;
        }
    }
    let weights = solve(matrix);
    let mean = searches.iter().map(|asked| asked.micros).sum::<f64>() / searches.len() as f64;
    let (mut rest, mut total) = (0.0, 0.0);
    for asked in &searches {
        let told: f64 = scaled(asked).iter().zip(&weights).map(|(a, b)| a * b).sum();
        rest += (asked.micros - told).powi(2);
        total += (asked.micros - mean).powi(2);
    }
    println!("cost model over the counters: R^2 {:.3} (goal 0.9)", 1.0 - rest / total);
    for ((name, weight), scale) in COUNTERS.iter().zip(weights).zip(scale) {
        println!("  {name:<10}{:>12.5} us", weight / scale);
    }
}

/// Solves linear equations by elimination; the last column is the right side. A little is added to the diagonal, so that
/// a counter that never moves gets no weight.
fn solve<const N: usize, const M: usize>(mut matrix: [[f64; M]; N]) -> [f64; N] {
    for pivot in 0..N {
        matrix[pivot][pivot] += 1e-6;
        let row = matrix[pivot];
        for (_, other) in matrix.iter_mut().enumerate().filter(|(at, _)| *at != pivot) {
            let factor = other[pivot] / row[pivot];
            other.iter_mut().zip(row).for_each(|(value, above)| *value -= factor * above);
        }
    }
    std::array::from_fn(|at| matrix[at][M - 1] / matrix[at][at])
}
