//! The authorities of the operating system, which a variable can replace: so in processes of their own.
#![cfg(feature = "system-roots")]

use std::process::Command;

use convoke_tls::{Roots, TlsConnector};

use crate::certificates::Authority;

/// The variable that makes a child of this process, and says what it does.
const ROLE: &str = "CONVOKE_TEST_SYSTEM_ROOTS";

/// A directory that is removed at the end.
struct Directory(std::path::PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    match Roots::system() {
        Ok(roots) => println!("\n{role}: {roots:?}, {}", TlsConnector::new(roots.clone()).is_ok()),
        Err(error) => println!("\n{role}: {error}"),
    }
}

/// Lets a child read authorities from a file with this content; what it prints.
fn read_by_child(role: &str, content: &str) -> String {
    let directory = Directory(std::env::temp_dir().join(format!("convoke-{role}-{}", std::process::id())));
    std::fs::create_dir_all(&directory.0).unwrap();
    let file = directory.0.join("authorities.pem");
    std::fs::write(&file, content).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "system_roots::the_child", "--nocapture"])
        .env(ROLE, role)
        .env("SSL_CERT_FILE", &file)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let line = printed.lines().find_map(|line| line.strip_prefix(&format!("{role}: ")));
    line.unwrap_or_else(|| panic!("it says nothing: {printed}")).to_owned()
}

#[test]
fn authorities_of_the_system_are_trusted() {
    let pem = format!("{}{}", Authority::new().pem(), Authority::new().pem());
    assert_eq!(read_by_child("two", &pem), "Roots { authorities: 2 }, true");
}

#[test]
fn a_system_without_authorities_is_an_error() {
    let line = read_by_child("none", "");
    assert!(line.contains("no certificates") || line.contains("no system certificate"), "{line}");
}
