//! Proxies and the exceptions to them, as the environment names them. What goes wrong must not tell the password.

use convoke_http::client::Proxy;

const PASSWORD: &str = "s3cret";

pub(super) fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let (uri, rest) = (lines.next().unwrap_or_default(), lines.collect::<Vec<_>>().join(","));
    let told = match Proxy::all(uri) {
        Ok(proxy) => format!("{:?}", proxy.no_proxy(&rest)),
        Err(error) => format!("{error} {error:?}"),
    };
    // Where it stands before an `@`, and nowhere else: exceptions are printed, in lower case.
    let parts: Vec<_> = uri.split(PASSWORD).collect();
    if let [before, after] = parts[..]
        && before.ends_with(':')
        && after.starts_with('@')
        && !after[1..].contains('@')
        && !rest.to_ascii_lowercase().contains(PASSWORD)
    {
        assert!(!told.contains(PASSWORD), "{told}");
    }
    let variables = |name: &str| match name {
        "http_proxy" | "ALL_PROXY" => Some(uri.to_owned()),
        "no_proxy" => Some(rest.clone()),
        _ => None,
    };
    assert_eq!(Proxy::from_vars(variables).is_ok(), uri.is_empty() || Proxy::all(uri).is_ok());
}
