//! The query of a URI, percent-encoded.

use core::fmt::Write;

use http::Uri;
use http::uri::PathAndQuery;

/// Returns a URI with names and values added to its query.
pub(super) fn with_query<N: AsRef<str>, V: AsRef<str>>(
    uri: &Uri,
    pairs: impl IntoIterator<Item = (N, V)>,
) -> Result<Uri, http::Error> {
    let mut query = uri.query().unwrap_or_default().to_owned();
    for (name, value) in pairs {
        if !query.is_empty() {
            query.push('&');
        }
        encode(&mut query, name.as_ref());
        query.push('=');
        encode(&mut query, value.as_ref());
    }
    if query.is_empty() {
        return Ok(uri.clone());
    }
    let path = if uri.path().is_empty() { "/" } else { uri.path() };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{path}?{query}"))?);
    Ok(Uri::from_parts(parts)?)
}

/// Appends a text; all but the characters that RFC 3986 calls unreserved are encoded.
fn encode(query: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            _ = write!(query, "%{byte:02X}");
        }
    }
}
