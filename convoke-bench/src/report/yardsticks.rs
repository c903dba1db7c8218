//! Extra columns of the server scenarios: ops per second, their cost on the server's core and the kernel's
//! share of it, and all peers as multiples of those that the scenario names.

use crate::measure::Measured;
use crate::scenario::{Scenario, Unit};

pub(super) fn headings(scenario: &Scenario) -> String {
    if scenario.yardsticks.is_empty() {
        return String::new();
    }
    let (of_all, ratio) = match scenario.unit {
        Unit::Nanoseconds => (format!(" {:>10} {:>13} {:>7}", "ops/s", "server ns/op", "kernel"), "ops/s"),
        Unit::Bytes | Unit::Late => (String::new(), scenario.unit.name()),
    };
    let ratios = scenario.yardsticks.iter().map(|yardstick| format!("  {ratio}:{yardstick}"));
    of_all + &ratios.collect::<String>()
}

pub(super) fn cells(scenario: &Scenario, rows: &[Measured], row: &Measured) -> String {
    if scenario.yardsticks.is_empty() {
        return String::new();
    }
    let cost = row.cost_per_op.median;
    let (of_all, width) = match scenario.unit {
        Unit::Nanoseconds => {
            let server = row.server_time.map_or("-".to_owned(), |time| super::short(time.per_op));
            let kernel = row.server_time.and_then(|time| time.in_kernel);
            let kernel = kernel.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
            (format!(" {:>10.0} {server:>13} {kernel:>7}", 1e9 / cost), "ops/s".len())
        }
        Unit::Bytes | Unit::Late => (String::new(), scenario.unit.name().len()),
    };
    let ratios = scenario.yardsticks.iter().map(|yardstick| {
        let other = rows.iter().find(|row| row.peer == *yardstick).map(|row| row.cost_per_op.median);
        let ratio = other.map_or("-".to_owned(), |other| match scenario.unit {
            Unit::Nanoseconds => format!("{:.2}", other / cost),
            Unit::Bytes | Unit::Late => format!("{:.2}", cost / other),
        });
        format!("  {ratio:>0$}", width + 1 + yardstick.len())
    });
    of_all + &ratios.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ServerTime;
    use crate::statistics::Summary;

    fn row(peer: &'static str, median: f64) -> Measured {
        Measured {
            peer,
            cost_per_op: Summary { median, spread: 0.0 },
            allocs_per_op: 0.0,
            instructions_per_op: None,
            server_time: Some(ServerTime { per_op: 4000.0, in_kernel: Some(0.925) }),
            ops_per_sample: 1,
        }
    }

    fn columns(unit: Unit) -> Vec<String> {
        let scenario = Scenario::new("echo", "").unit(unit).served(&["tokio", "absent"]);
        let rows = [row("convoke", 5000.0), row("tokio", 10_000.0)];
        let cells = rows.iter().map(|row| cells(&scenario, &rows, row));
        std::iter::once(headings(&scenario)).chain(cells).collect()
    }

    #[test]
    fn of_two_times_the_shorter_has_the_higher_rate() {
        let expected = [
            "      ops/s  server ns/op  kernel  ops/s:tokio  ops/s:absent",
            "     200000          4000    92 %         2.00             -",
            "     100000          4000    92 %         1.00             -",
        ];
        assert_eq!(columns(Unit::Nanoseconds), expected);
    }

    #[test]
    fn of_two_weights_the_lighter_has_the_lower_share() {
        let expected =
            ["  bytes:tokio  bytes:absent", "         0.50             -", "         1.00             -"];
        assert_eq!(columns(Unit::Bytes), expected);
    }

    #[test]
    fn where_no_server_works_there_is_nothing_more_to_say() {
        let scenario = Scenario::new("spawn", "");
        assert_eq!(headings(&scenario) + &cells(&scenario, &[], &row("tokio", 1.0)), "");
    }
}
