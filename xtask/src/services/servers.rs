//! Servers on loopback, each a child of this process.

use super::first_of;
use crate::command::{self, Show};
use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time that a server may take to start, and to end.
const START_LIMIT: Duration = Duration::from_secs(20);
const END_LIMIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// The user that servers run as if this process is root: PostgreSQL refuses to run as root, and the others need no rights.
const USER: &str = "nobody";

/// A server that runs. It is ended when it is dropped.
pub(super) struct Server {
    child: Child,
    /// The signal that asks it to end without waiting for its clients.
    signal: &'static str,
    /// The variables by which tests find it.
    pub(super) variables: Vec<(&'static str, String)>,
}

impl Server {
    /// Starts a server, and waits until it accepts connections.
    fn start(mut command: Command, port: u16, log: &Path, signal: &'static str) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let file = |_| fs::File::options().create(true).append(true).open(log);
        let (out, errors) = (file(0), file(1));
        let (Ok(out), Ok(errors)) = (out, errors) else { return Err(format!("no log at {}", log.display())) };
        command.stdin(Stdio::null()).stdout(out).stderr(errors);
        let child = command.spawn().map_err(|error| format!("{name} does not start: {error}"))?;
        let mut server = Self { child, signal, variables: Vec::new() };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.child.try_wait().ok().flatten();
            if ended.is_some() || begun.elapsed() > START_LIMIT {
                let log = fs::read_to_string(log).unwrap_or_default();
                return Err(format!("{name} does not answer at port {port}; its log:\n{log}"));
            }
            sleep(PAUSE);
        }
        Ok(server)
    }

    fn with(mut self, variable: &'static str, value: String) -> Self {
        self.variables.push((variable, value));
        self
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let process = self.child.id().to_string();
        command::run(Command::new("kill").args(["-s", self.signal, &process]), Show::Never);
        let begun = Instant::now();
        while begun.elapsed() < END_LIMIT {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            sleep(PAUSE);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts PostgreSQL, with a new database and, if openssl is there, TLS.
pub(super) fn postgres(program: &Path, folder: &Path) -> Result<Server, String> {
    let (data, port) = (own_folder(folder, "postgres")?, free_port()?);
    let cluster = data.join("cluster");
    let mut initdb = as_user(&program.with_file_name("initdb"));
    initdb.arg("-D").arg(&cluster).args([
        "-U",
        "convoke",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
    ]);
    let ran = command::run(&mut initdb, Show::OnFailure);
    ran.ending.map_err(|how| format!("initdb failed ({how})"))?;
    let mut server = as_user(program);
    server.arg("-D").arg(&cluster).args(["-p", &port.to_string(), "-k"]).arg(&data);
    for setting in ["listen_addresses=127.0.0.1", "fsync=off", "max_connections=60", "shared_buffers=32MB"] {
        server.args(["-c", setting]);
    }
    let certificate = certificate(&data);
    if let Some((certificate, key)) = &certificate {
        server.args(["-c", "ssl=on", "-c", &format!("ssl_cert_file={}", certificate.display())]);
        server.args(["-c", &format!("ssl_key_file={}", key.display())]);
    }
    // SIGINT: it disconnects its clients, and ends.
    let mut server = Server::start(server, port, &data.join("log"), "INT")?
        .with("CONVOKE_TEST_POSTGRES", format!("host=127.0.0.1 port={port} user=convoke dbname=postgres"));
    server = server.with(
        "CONVOKE_TEST_POSTGRES_SOCKET",
        format!("host={} port={port} user=convoke dbname=postgres", data.display()),
    );
    if let Some((certificate, _)) = certificate {
        server = server.with("CONVOKE_TEST_POSTGRES_CERTIFICATE", certificate.display().to_string());
    }
    Ok(server)
}

/// Makes a certificate for `localhost`, which only the user of the servers can read.
fn certificate(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let openssl = first_of(["/usr/bin/openssl".into(), "/usr/local/bin/openssl".into()])?;
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    let mut command = as_user(&openssl);
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]);
    command.args([
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-keyout",
    ]);
    command.arg(&key).arg("-out").arg(&certificate);
    command::run(&mut command, Show::Never).succeeded().then_some((certificate, key))
}

/// Starts Redis, without files.
pub(super) fn redis(program: &Path, folder: &Path) -> Result<Server, String> {
    let (data, port) = (own_folder(folder, "redis")?, free_port()?);
    let mut server = as_user(program);
    server.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
    server.arg("--dir").arg(&data);
    let started = Server::start(server, port, &data.join("log"), "TERM")?;
    Ok(started.with("CONVOKE_TEST_REDIS", format!("127.0.0.1:{port}")))
}

/// Starts NATS with its streams.
pub(super) fn nats(program: &Path, folder: &Path) -> Result<Server, String> {
    let (data, port) = (own_folder(folder, "nats")?, free_port()?);
    let mut server = as_user(program);
    server.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]).arg(&data);
    let started = Server::start(server, port, &data.join("log"), "TERM")?;
    Ok(started.with("CONVOKE_TEST_NATS", format!("127.0.0.1:{port}")))
}

/// Starts nginx: `/` says hello, `/large` has 1 MiB, `/slow` sends it at 256 KiB a second; `/connection` says by which connection it
/// was asked, and `/echo` what it was asked for by whom.
pub(super) fn nginx(program: &Path, folder: &Path) -> Result<Server, String> {
    let (data, port) = (own_folder(folder, "nginx")?, free_port()?);
    let here = data.display();
    let failed = |error: io::Error| format!("nginx cannot be prepared: {error}");
    fs::write(data.join("large"), vec![b'x'; 1 << 20]).map_err(failed)?;
    let bodies = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = bodies.iter().map(|kind| format!("{kind}_temp_path {here}/{kind};\n")).collect();
    let configuration = format!(
        "daemon off; master_process off; pid {here}/pid; error_log {here}/errors;\n\
         events {{ worker_connections 512; }}\n\
         http {{ access_log off; {temporary}\n\
         server {{ listen 127.0.0.1:{port}; root {here};\n\
         location = / {{ default_type text/plain; return 200 \"hello\\n\"; }}\n\
         location = /missing {{ return 404; }}\n\
         location = /connection {{ default_type text/plain; return 200 \"$connection $connection_requests\"; }}\n\
         location = /echo {{ default_type text/plain; return 200 \"$request_method $http_x_forwarded_for\"; }}\n\
         location = /slow {{ alias {here}/large; limit_rate 256k; }} }} }}\n"
    );
    fs::write(data.join("nginx.conf"), configuration).map_err(failed)?;
    let mut server = as_user(program);
    server.arg("-e").arg(data.join("errors")).arg("-p").arg(&data).arg("-c").arg(data.join("nginx.conf"));
    let started = Server::start(server, port, &data.join("log"), "TERM")?;
    Ok(started.with("CONVOKE_TEST_NGINX", format!("127.0.0.1:{port}")))
}

/// Returns a port that was free a moment ago.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("no port is free: {error}"))
}

/// Makes a folder for a server, which belongs to its user.
fn own_folder(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    let made = fs::create_dir_all(&path).and_then(|()| open_to_all(&path));
    made.map_err(|error| format!("no folder at {}: {error}", path.display()))?;
    Ok(path)
}

/// Lets every user make files in a folder.
#[cfg(unix)]
pub(super) fn open_to_all(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o777))
}

#[cfg(not(unix))]
pub(super) fn open_to_all(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns a command that runs as a user without rights, if this one has them.
fn as_user(program: &Path) -> Command {
    if own_user() != Some(0) {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid",
        USER,
        "--regid",
        "nogroup",
        "--clear-groups",
        "--inh-caps=-all",
        "--pdeathsig",
        "KILL",
    ]);
    command.arg(program);
    command
}

/// Returns the number of the user that this process runs as.
pub(super) fn own_user() -> Option<u32> {
    command::run(Command::new("id").arg("-u"), Show::Never).stdout.trim().parse().ok()
}
