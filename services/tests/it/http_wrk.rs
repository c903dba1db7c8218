//! wrk against our server: a second of load without an error, and a drain under load, which loses no request.

use convoke_services::service;

use crate::http_server::{drain_under_load, number_before, run_beside_server};

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

#[test]
fn a_drain_under_load_from_wrk_loses_no_request() {
    let script = std::env::temp_dir().join(format!("pipelined-{}.lua", std::process::id()));
    std::fs::write(&script, PIPELINED).unwrap();
    for round in 0..4 {
        let pipelined = ["-s".to_owned(), script.to_str().unwrap().to_owned()];
        let drained = drain_under_load(
            &service("CONVOKE_TEST_WRK"),
            move |address| {
                let plain = ["-t1", "-c16", "-d1s"].map(str::to_owned).into_iter();
                let options = plain.chain(pipelined.into_iter().filter(|_| round % 2 == 1));
                options.chain([format!("http://{address}/")]).collect()
            },
            // Each round stops the server at another moment.
            1000 + 333 * round,
        );
        // Connections that wrk opens after the stop are refused, which it counts as errors of sockets. Answers it has
        // received all, or it would count less than the server.
        let counted = number_before(&drained.output, "requests in");
        println!("round {round}: {counted} by wrk, {} by the server", drained.answered);
        assert_eq!((drained.begun, drained.answered), (counted, counted), "{}", drained.output);
    }
    std::fs::remove_file(script).unwrap();
}
