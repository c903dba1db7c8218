//! curl against our server: both versions of HTTP, many requests over one connection, a large answer.

use convoke_services::service;

use crate::http_server::{Certificate, run_beside_secure_server, run_beside_server};

fn curl(arguments: &'static [&'static str], paths: &'static [&'static str]) -> (String, usize) {
    let ran = run_beside_server(&service("CONVOKE_TEST_CURL"), move |address| {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        arguments.chain(paths.iter().map(|path| format!("http://{address}{path}"))).collect()
    });
    (ran.output, ran.answered)
}

#[test]
fn curl_speaks_both_versions_of_http() {
    assert_eq!(curl(&["-sS", "--fail"], &["/version"]), ("HTTP/1.1".to_owned(), 1));
    let ran = curl(&["-sS", "--fail", "--http2-prior-knowledge"], &["/version"]);
    assert_eq!(ran, ("HTTP/2.0".to_owned(), 1));
}

/// Runs curl with a server that encrypts, and checks its certificate.
fn secure_curl(arguments: &'static [&'static str], paths: &'static [&'static str]) -> (String, usize) {
    let certificate = Certificate::new();
    let authority = certificate.path.display().to_string();
    let ran = run_beside_secure_server(&certificate, &service("CONVOKE_TEST_CURL"), move |address| {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        let arguments = arguments.chain(["--cacert".to_owned(), authority]);
        arguments
            .chain(paths.iter().map(|path| format!("https://localhost:{}{path}", address.port())))
            .collect()
    });
    (ran.output, ran.answered)
}

#[test]
fn curl_agrees_on_a_version_of_http_by_tls() {
    assert_eq!(secure_curl(&["-sS", "--fail", "--http1.1"], &["/version"]), ("HTTP/1.1".to_owned(), 1));
    assert_eq!(secure_curl(&["-sS", "--fail", "--http2"], &["/version"]), ("HTTP/2.0".to_owned(), 1));
}

#[test]
fn curl_sees_the_end_of_encrypted_answers() {
    let (output, answered) = secure_curl(&["-sS", "--fail", "-w", "%{num_connects}"], &["/", "/large", "/"]);
    assert_eq!((output.len(), answered), ((1 << 20) + "hello1".len() + "0hello0".len(), 3));
}

#[test]
fn curl_uses_one_connection_for_many_requests() {
    let (output, answered) = curl(&["-sS", "--fail", "-w", "%{num_connects}"], &["/", "/", "/", "/", "/"]);
    assert_eq!((output.as_str(), answered), ("hello1hello0hello0hello0hello0", 5));
}

#[test]
fn curl_receives_a_large_answer() {
    let (output, _) = curl(&["-sS", "--fail"], &["/large"]);
    assert_eq!(output.len(), 1 << 20);
}
