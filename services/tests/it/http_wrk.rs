//! wrk against our server: a second of load, without an error.

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
