//! A server of Convoke's on loopback, beside which a foreign program runs.

use std::env;
use std::fs;
use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{self, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::Runtime;
use convoke::net::TcpListener;
use convoke::prelude::*;
use convoke::tls::{Identity, TlsAcceptor};
use convoke_http::{ALPN, RequestBody, serve};
use http::{Request, Response};
use rcgen::{CertificateParams, KeyPair};

/// Output of a program, and the number of requests that the server has answered.
pub(crate) struct Ran {
    pub(crate) output: String,
    pub(crate) answered: usize,
}

async fn answer(request: Request<RequestBody>) -> io::Result<Response<String>> {
    let body = match request.uri().path() {
        "/large" => "x".repeat(1 << 20),
        "/version" => format!("{:?}", request.version()),
        _ => "hello".to_owned(),
    };
    Ok(Response::new(body))
}

/// Certificate of a server at `localhost`, as a file for its clients, and the way to accept them.
pub(crate) struct Certificate {
    pub(crate) path: PathBuf,
    acceptor: TlsAcceptor,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap().pem();
        let identity = Identity::from_pem(certificate.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
        let acceptor = TlsAcceptor::builder(identity).alpn(ALPN).build().unwrap();
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("convoke-{}-{number}.pem", process::id()));
        fs::write(&path, certificate).unwrap();
        Self { path, acceptor }
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Runs a program beside a server. The arguments are made with the server's address.
#[track_caller]
pub(crate) fn run_beside_server(
    program: &str,
    arguments: impl FnOnce(SocketAddr) -> Vec<String> + Send + 'static,
) -> Ran {
    run_beside(None, program, arguments)
}

/// As [`run_beside_server`], with a server that encrypts.
#[track_caller]
pub(crate) fn run_beside_secure_server(
    certificate: &Certificate,
    program: &str,
    arguments: impl FnOnce(SocketAddr) -> Vec<String> + Send + 'static,
) -> Ran {
    run_beside(Some(certificate.acceptor.clone()), program, arguments)
}

#[track_caller]
fn run_beside(
    acceptor: Option<TlsAcceptor>,
    program: &str,
    arguments: impl FnOnce(SocketAddr) -> Vec<String> + Send + 'static,
) -> Ran {
    let program = program.to_owned();
    let answered = Arc::new(AtomicUsize::new(0));
    let counted = answered.clone();
    let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
    let ended = runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let counts = move |_: &convoke_http::RequestRecord| _ = counted.fetch_add(1, Ordering::Relaxed);
        let server = async {
            let server = serve(listener, answer).on_request(counts);
            match acceptor {
                Some(acceptor) => server.tls(acceptor).into_future().await?,
                None => server.into_future().await?,
            }
            Err(io::Error::other("the server has ended"))
        };
        let runs =
            async move { blocking(move |_| Command::new(program).args(arguments(address)).output()).await };
        race((server, runs)).await
    });
    let output = ended.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    Ran { output: text, answered: answered.load(Ordering::Relaxed) }
}

/// Returns the number before, or after, a word in what a program has printed.
#[track_caller]
pub(crate) fn number_before(output: &str, word: &str) -> usize {
    let (before, _) = output.split_once(word).unwrap_or_else(|| panic!("no {word:?} in {output}"));
    let number: String = before.trim_end().chars().rev().take_while(char::is_ascii_digit).collect();
    number.chars().rev().collect::<String>().parse().unwrap()
}
