//! The difference of two lists of lines, from their longest common subsequence.

/// The maximum length for a comparison, whose table grows with the product of the lengths. Longer lists are
/// shown one after the other.
const MOST_LINES: usize = 2_000;

/// Lists all lines of both: common lines once, other lines of the first marked by `-`, of the second by `+`.
pub(super) fn difference(first: &[&str], second: &[&str]) -> String {
    let common = if first.len().max(second.len()) > MOST_LINES { Vec::new() } else { common(first, second) };
    let mut shown = Vec::new();
    let (mut left, mut right) = (0, 0);
    for (next_left, next_right) in common.into_iter().chain([(first.len(), second.len())]) {
        shown.extend(first[left..next_left].iter().map(|line| format!("- {line}")));
        shown.extend(second[right..next_right].iter().map(|line| format!("+ {line}")));
        shown.extend(first.get(next_left).map(|line| format!("  {line}")));
        (left, right) = (next_left + 1, next_right + 1);
    }
    shown.join("\n")
}

/// Returns the positions of the longest common subsequence in both lists.
fn common(first: &[&str], second: &[&str]) -> Vec<(usize, usize)> {
    // For each pair of positions: the length of the longest common subsequence of the rests.
    let mut longest = vec![vec![0_u32; second.len() + 1]; first.len() + 1];
    for left in (0..first.len()).rev() {
        for right in (0..second.len()).rev() {
            longest[left][right] = if first[left] == second[right] {
                longest[left + 1][right + 1] + 1
            } else {
                longest[left + 1][right].max(longest[left][right + 1])
            };
        }
    }
    let mut common = Vec::new();
    let (mut left, mut right) = (0, 0);
    while left < first.len() && right < second.len() {
        if first[left] == second[right] {
            common.push((left, right));
            (left, right) = (left + 1, right + 1);
        } else if longest[left + 1][right] >= longest[left][right + 1] {
            left += 1;
        } else {
            right += 1;
        }
    }
    common
}
