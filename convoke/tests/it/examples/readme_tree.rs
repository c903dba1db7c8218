//! README shows the tree of tasks that the tour prints: names, places and all.

use super::tasks::tree_of_server;

const README: &str = include_str!("../../../../README.md");
/// The example, as README names it.
const FILE: &str = "tour/tasks.rs";

/// Leaves out where the example lies on this machine.
fn without_folders(line: &str) -> String {
    let mut parts: Vec<&str> = line.split(FILE).collect();
    let last = parts.pop().unwrap_or_default();
    let before =
        parts.iter().map(|part| part.trim_end_matches(|c| !matches!(c, ' ' | '(')).to_owned() + FILE);
    before.chain([last.to_owned()]).collect()
}

#[test]
fn readme_shows_what_the_tour_prints() {
    let printed: Vec<String> = tree_of_server().to_string().lines().map(without_folders).collect();
    let block =
        README.split("```").find(|block| block.starts_with("text\n`server`")).expect("README shows a tree");
    let shown: Vec<&str> = block.lines().skip(1).collect();
    assert_eq!(shown, printed, "README shows another tree than the tour prints");
}
