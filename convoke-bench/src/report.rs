//! The output: a table for people, or one JSON object per line for programs.

mod yardsticks;

use std::io::{IsTerminal, Write};

use crate::allocator;
use crate::arguments::Options;
use crate::measure::Measured;
use crate::scenario::{CONVOKE, Scenario};

/// Prints the scenarios, their ops, and their contestants.
pub(crate) fn list(scenarios: &[Scenario]) {
    for scenario in scenarios {
        let peers: Vec<&str> = scenario.contestants.iter().map(|contestant| contestant.peer).collect();
        emit(&format!(
            "{}\n    one op: {}\n    contestants: {}\n",
            scenario.name,
            scenario.about,
            peers.join(", ")
        ));
    }
}

/// Prints what holds for all the tables that follow.
pub(crate) fn preamble(options: &Options<'_>) {
    emit(&format!(
        "allocator {}, median of {} samples of about {} ms, spread = half the interquartile range\n",
        allocator::backend().name(),
        options.plan.repeat,
        options.plan.sample.as_millis(),
    ));
}

pub(crate) fn table(scenario: &Scenario, rows: &[Measured]) {
    emit(&render_table(scenario, rows, &Ink::for_stdout()));
}

pub(crate) fn json(scenario: &Scenario, rows: &[Measured]) {
    emit(&render_json(scenario, rows));
}

/// Writes to standard output. A reader that has gone away (`| head`) ends the program.
fn emit(text: &str) {
    let mut out = std::io::stdout();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

/// The terminal's bold type, or nothing.
struct Ink {
    bold: &'static str,
    plain: &'static str,
}

impl Ink {
    const NONE: Self = Self { bold: "", plain: "" };

    fn for_stdout() -> Self {
        if std::io::stdout().is_terminal() { Self { bold: "\x1b[1m", plain: "\x1b[0m" } } else { Self::NONE }
    }
}

fn render_table(scenario: &Scenario, rows: &[Measured], ink: &Ink) -> String {
    let Ink { bold, plain } = ink;
    let mut text = format!("\n{bold}{}{plain}\n  one op: {}\n", scenario.name, scenario.about);
    let width = rows.iter().map(|row| row.peer.len()).max().unwrap_or(0).max("peer".len());
    let unit = format!("{}/op", scenario.unit.name());
    text += &format!(
        "  {:width$} {unit:>10} {:>9} {:>11} {:>16}{}\n",
        "peer",
        "spread",
        "allocs/op",
        "instructions/op",
        yardsticks::headings(scenario)
    );
    for row in rows {
        text += &format!(
            "  {:width$} {:>10} {:>9} {:>11} {:>16}{}\n",
            row.peer,
            short(row.cost_per_op.median),
            format!("±{:.1} %", row.cost_per_op.spread),
            format!("{:.2}", row.allocs_per_op),
            row.instructions_per_op.map_or("-".to_owned(), short),
            yardsticks::cells(scenario, rows, row),
        );
    }
    if let Some(verdict) = verdict(rows) {
        text += &format!("  {bold}{verdict}{plain}\n");
    }
    text
}

/// Returns the line that compares Convoke with the fastest peer, or names the fastest if Convoke does not
/// take part.
fn verdict(rows: &[Measured]) -> Option<String> {
    let best = rows
        .iter()
        .filter(|row| !row.peer.starts_with(CONVOKE))
        .min_by(|a, b| a.cost_per_op.median.total_cmp(&b.cost_per_op.median))?;
    let Some(ours) = rows.iter().find(|row| row.peer == CONVOKE) else {
        return Some(format!("best peer: {}", best.peer));
    };
    let ratio = ours.cost_per_op.median / best.cost_per_op.median;
    Some(format!("{CONVOKE} / best peer ({}) = {ratio:.2}", best.peer))
}

fn render_json(scenario: &Scenario, rows: &[Measured]) -> String {
    // The names are identifiers of this program, so they need no escaping; a test checks that.
    let line = |row: &Measured| {
        format!(
            "{{\"scenario\":\"{}\",\"peer\":\"{}\",\"unit\":\"{}\",\"median\":{:.4},\"spread\":{:.4},\
             \"allocs_per_op\":{:.4},\"instructions_per_op\":{},\"server_ns_per_op\":{},\"server_kernel_share\":{}}}\n",
            scenario.name,
            row.peer,
            scenario.unit.name(),
            row.cost_per_op.median,
            row.cost_per_op.spread,
            row.allocs_per_op,
            or_null(row.instructions_per_op),
            or_null(row.server_time.map(|time| time.per_op)),
            or_null(row.server_time.and_then(|time| time.in_kernel)),
        )
    };
    rows.iter().map(line).collect()
}

fn or_null(number: Option<f64>) -> String {
    number.map_or("null".to_owned(), |number| format!("{number:.4}"))
}

/// Formats a number with its significant decimals.
fn short(number: f64) -> String {
    match number {
        ..10.0 => format!("{number:.2}"),
        10.0..1000.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ServerTime;
    use crate::statistics::Summary;

    fn row(peer: &'static str, median: f64, instructions_per_op: Option<f64>) -> Measured {
        let cost_per_op = Summary { median, spread: 1.25 };
        let server_time = instructions_per_op.map(|_| ServerTime { per_op: 4000.0, in_kernel: Some(0.9) });
        Measured {
            peer,
            cost_per_op,
            allocs_per_op: 1.0,
            instructions_per_op,
            server_time,
            ops_per_sample: 1,
        }
    }

    fn scenario() -> Scenario {
        Scenario::new("spawn", "spawn a task and join it")
    }

    #[test]
    fn the_table_ends_with_our_ratio_to_the_best_peer() {
        let rows = [row("convoke", 31.0, None), row("rayon", 200.0, None), row("tokio", 100.0, Some(1234.5))];
        let expected = "
spawn
  one op: spawn a task and join it
  peer         ns/op    spread   allocs/op  instructions/op
  convoke       31.0    ±1.2 %        1.00                -
  rayon        200.0    ±1.2 %        1.00                -
  tokio        100.0    ±1.2 %        1.00             1234
  convoke / best peer (tokio) = 0.31
";
        assert_eq!(render_table(&scenario(), &rows, &Ink::NONE), expected);
    }

    #[test]
    fn without_us_the_best_peer_is_named() {
        assert_eq!(
            verdict(&[row("rayon", 2.0, None), row("tokio", 1.0, None)]).as_deref(),
            Some("best peer: tokio")
        );
        assert_eq!(verdict(&[row("convoke", 1.0, None)]), None);
    }

    #[test]
    fn json_is_one_object_a_line_with_null_for_unknown() {
        let rows = [row("convoke", 31.0, None), row("tokio", 100.0, Some(55.0))];
        let expected = r#"{"scenario":"spawn","peer":"convoke","unit":"ns","median":31.0000,"spread":1.2500,"allocs_per_op":1.0000,"instructions_per_op":null,"server_ns_per_op":null,"server_kernel_share":null}
{"scenario":"spawn","peer":"tokio","unit":"ns","median":100.0000,"spread":1.2500,"allocs_per_op":1.0000,"instructions_per_op":55.0000,"server_ns_per_op":4000.0000,"server_kernel_share":0.9000}
"#;
        assert_eq!(render_json(&scenario(), &rows), expected);
    }

    #[test]
    fn names_need_no_escaping_in_json() {
        let plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        for scenario in crate::scenario::all() {
            assert!(plain(scenario.name) && scenario.contestants.iter().all(|entry| plain(entry.peer)));
        }
    }

    #[test]
    fn numbers_keep_about_three_digits() {
        assert_eq!(
            [0.714, 9.5, 31.04, 999.0, 12345.6].map(short),
            ["0.71", "9.50", "31.0", "999.0", "12346"]
        );
    }
}
