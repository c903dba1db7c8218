//! Counting tests, from the closing lines of the programs that run them.

use std::ops::AddAssign;

/// How many tests passed and how many did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl Tally {
    /// From the `Summary` line of cargo-nextest:
    /// `Summary [ 0.1s] 3/9 tests run: 1 passed (1 slow), 1 failed, 1 timed out, 6 skipped`.
    pub(crate) fn of_nextest(output: &str) -> Self {
        let mut tally = Self::default();
        let output = without_colours(output);
        for line in output.lines().filter(|line| line.trim_start().starts_with("Summary [")) {
            let Some((_, counts)) = line.split_once(" run: ") else { continue };
            for (count, word) in without_asides(counts).split(',').filter_map(count_and_word) {
                match word {
                    "passed" => tally.passed += count,
                    "skipped" => {}
                    // "failed", "timed out", "exec failed": whatever else there is, it did not pass.
                    _ => tally.failed += count,
                }
            }
        }
        tally
    }

    /// From the `test result:` lines of the standard harness, of which doc tests print several.
    pub(crate) fn of_harness(output: &str) -> Self {
        let mut tally = Self::default();
        let output = without_colours(output);
        for line in output.lines().filter(|line| line.trim_start().starts_with("test result: ")) {
            let Some((_, counts)) = line.split_once(". ") else { continue };
            for (count, word) in counts.split(';').filter_map(count_and_word) {
                match word {
                    "passed" => tally.passed += count,
                    "failed" => tally.failed += count,
                    _ => {}
                }
            }
        }
        tally
    }
}

/// Removes the escapes that colour a terminal: with `CARGO_TERM_COLOR=always` they come through a pipe too.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut pieces = text.split("\u{1b}[");
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        // An escape ends with its first letter.
        plain.push_str(
            piece
                .trim_start_matches(|letter: char| !letter.is_ascii_alphabetic())
                .get(1..)
                .unwrap_or_default(),
        );
    }
    plain
}

/// Removes what stands in parentheses: `2 passed (1 slow, 1 flaky), 0 skipped` has a comma too many.
fn without_asides(text: &str) -> String {
    let mut depth = 0_u32;
    text.chars()
        .filter(|letter| {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
        .collect()
}

fn count_and_word(part: &str) -> Option<(u64, &str)> {
    let (count, word) = part.trim().split_once(' ')?;
    Some((count.parse().ok()?, word.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nextest_counts_everything_that_did_not_pass_as_failed() {
        let output = "     Summary [   0.031s] 7/9 tests run: 4 passed (1 slow, 1 flaky), 1 failed, \
                      1 timed out, 1 exec failed, 2 skipped\n   Summary of nothing";
        assert_eq!(Tally::of_nextest(output), Tally { passed: 4, failed: 3 });
        let one = "     Summary [   0.002s] 1 test run: 1 passed, 0 skipped";
        assert_eq!(Tally::of_nextest(one), Tally { passed: 1, failed: 0 });
    }

    #[test]
    fn colours_do_not_hide_the_counts() {
        let output = "\u{1b}[32;1m     Summary\u{1b}[0m [   0.1s] \u{1b}[1m2\u{1b}[0m tests run: \
                      \u{1b}[1m1\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m1\u{1b}[0m failed";
        assert_eq!(Tally::of_nextest(output), Tally { passed: 1, failed: 1 });
        let output = "test result: \u{1b}[32mok\u{1b}(B\u{1b}[m. 3 passed; 0 failed";
        assert_eq!(Tally::of_harness(output), Tally { passed: 3, failed: 0 });
    }

    #[test]
    fn the_lines_of_the_harness_add_up() {
        let output = "test a ... ok\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.5s\n";
        assert_eq!(Tally::of_harness(output), Tally { passed: 4, failed: 2 });
    }
}
