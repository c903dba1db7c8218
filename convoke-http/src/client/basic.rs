//! Names and passwords in a header field (RFC 7617), and the Base64 that they are written in.

use http::HeaderValue;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the value of `Authorization` or `Proxy-Authorization` for a name and a password, `name:password`.
pub(super) fn basic(name_and_password: &[u8]) -> HeaderValue {
    let text = format!("Basic {}", base64(name_and_password));
    let mut value = HeaderValue::try_from(text).unwrap_or_else(|_| unreachable!("Base64 is ASCII"));
    value.set_sensitive(true);
    value
}

/// Returns the value for the part of a URI before `@`, whose bytes may be written as `%41`; `None` if it has none.
pub(super) fn basic_of(authority: &str) -> Option<HeaderValue> {
    let (user, _) = authority.rsplit_once('@')?;
    let mut decoded = percent_decoded(user);
    if !user.contains(':') {
        decoded.push(b':');
    }
    Some(basic(&decoded))
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for index in 0..4 {
            let six = (bits >> (18 - 6 * index)) & 63;
            text.push(if index <= group.len() { char::from(ALPHABET[six as usize]) } else { '=' });
        }
    }
    text
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = (byte == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        let hex =
            hex.and_then(|hex| str::from_utf8(hex).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        decoded.push(hex.unwrap_or(byte));
        at += if hex.is_some() { 3 } else { 1 };
    }
    decoded
}
