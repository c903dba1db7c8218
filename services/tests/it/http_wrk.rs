//! wrk against our server: a second of load without an error, and a drain under load, which loses no request.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use convoke_services::service;

use crate::http_server::{number_before, run_beside_server};

#[test]
fn wrk_sees_no_error_under_load() {
    let ran = run_beside_server(&service("CONVOKE_TEST_WRK"), |address| {
        ["-t1", "-c16", "-d1s"].map(str::to_owned).into_iter().chain([format!("http://{address}/")]).collect()
    });
    let counted = number_before(&ran.output, "requests in");
    println!("{counted} requests by wrk, {} by the server", ran.answered);
    assert!(!ran.output.contains("Socket errors") && !ran.output.contains("Non-2xx"), "{}", ran.output);
    // Those that were under way at the end are answered, and not counted by wrk.
    assert!(counted > 0 && ran.answered >= counted && ran.answered <= counted + 32, "{}", ran.output);
}

/// Makes wrk send eight requests at once, and wait for as many answers.
const PIPELINED: &str = r#"
local requests
init = function()
    requests = string.rep(wrk.format("GET", "/"), 8)
end
request = function()
    return requests
end
"#;

/// Rounds, if `CONVOKE_ROUNDS` does not set them. 100 of 100 is what was tried.
const ROUNDS: u64 = 4;

/// The server is a process of its own, which gets SIGTERM in the middle of the load.
#[test]
fn a_drain_under_load_from_wrk_loses_no_request() {
    let script = env::temp_dir().join(format!("pipelined-{}.lua", std::process::id()));
    fs::write(&script, PIPELINED).unwrap();
    let rounds = env::var("CONVOKE_ROUNDS").ok().map(|rounds| rounds.parse().expect("a number of rounds"));
    for round in 0..rounds.unwrap_or(ROUNDS) {
        let server = Command::new(env!("CARGO_BIN_EXE_drain")).arg("serve").stdout(Stdio::piped()).spawn();
        let mut server = KilledOnDrop(server.unwrap());
        let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap();
        let mut wrk = Command::new(service("CONVOKE_TEST_WRK"));
        wrk.args(["-t1", "-c16", "-d2s"]);
        if round % 2 == 1 {
            wrk.arg("-s").arg(&script);
        }
        let load = wrk.arg(format!("http://127.0.0.1:{port}/")).stdout(Stdio::piped()).spawn().unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "under load");
        // Each round stops the server at another moment.
        sleep(Duration::from_millis(10 + 37 * round % 500));
        let asked = Instant::now();
        let process = server.0.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &process]).status().unwrap().success());
        let status = server.0.wait().unwrap();
        assert_eq!(status.code(), Some(143), "it was stopped by SIGTERM");
        let took = asked.elapsed();
        assert!(took < Duration::from_secs(10), "the drain took {took:?}");
        let counts = lines.next().unwrap().unwrap();
        let (begun, answered) = counts.split_once(' ').unwrap();
        let output = load.wait_with_output().unwrap();
        let output = String::from_utf8_lossy(&output.stdout);
        // Connections that wrk opens after the stop are refused, which it counts as errors of sockets. Answers it has
        // received all, or it would count less than the server.
        let counted = number_before(&output, "requests in");
        println!("round {round}: {counted} by wrk, {answered} by the server, drained in {took:?}");
        assert!(counted > 0, "{output}");
        let counted = counted.to_string();
        assert_eq!((begun, answered), (&*counted, &*counted), "{output}");
    }
    fs::remove_file(script).unwrap();
}

/// A process that does not outlive a test that fails.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
