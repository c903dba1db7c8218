//! h2load against our server: every request of many streams is answered.

use convoke_services::service;

use crate::http_server::{Certificate, number_before, run_beside_secure_server, run_beside_server};

#[test]
fn h2load_has_every_request_answered() {
    let ran = run_beside_server(&service("CONVOKE_TEST_H2LOAD"), |address| {
        let arguments = ["-n", "4000", "-c", "8", "-m", "20"].map(str::to_owned);
        arguments.into_iter().chain([format!("http://{address}/")]).collect()
    });
    assert_eq!(number_before(&ran.output, "succeeded"), 4000, "{}", ran.output);
    assert_eq!(number_before(&ran.output, " 2xx"), 4000, "{}", ran.output);
    assert_eq!(ran.answered, 4000);
}

#[test]
fn h2load_has_every_request_answered_by_tls() {
    let ran = run_beside_secure_server(&Certificate::new(), &service("CONVOKE_TEST_H2LOAD"), |address| {
        let arguments = ["-n", "4000", "-c", "8", "-m", "20"].map(str::to_owned);
        arguments.into_iter().chain([format!("https://{address}/")]).collect()
    });
    assert!(ran.output.contains("Application protocol: h2"), "{}", ran.output);
    assert_eq!(number_before(&ran.output, "succeeded"), 4000, "{}", ran.output);
    assert_eq!(ran.answered, 4000);
}
