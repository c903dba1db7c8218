//! Redirects: where they lead, and what of the request goes along (RFC 9110, 15.4).

use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_TYPE,
    COOKIE, HOST, LOCATION, PROXY_AUTHORIZATION, TRANSFER_ENCODING,
};
use http::{Method, StatusCode, Uri};

use super::error::{ClientError, Phase};
use super::origin::Origin;
use super::payload::Payload;
use super::response::Response;
use super::send::Order;

/// A redirect to follow.
pub(super) struct Redirect {
    pub(super) uri: Uri,
    /// The next request is a GET, without the body.
    pub(super) changes_method: bool,
    /// The next request goes to another origin, which must not see what is secret.
    pub(super) changes_origin: bool,
}

/// Returns the redirect that a response asks for. `None`, if it does not, or if the body was a stream and cannot be sent again:
/// then the response is for the program.
pub(super) fn redirect_of(response: &Response, order: &Order) -> Result<Option<Redirect>, ClientError> {
    let method = &order.head.method;
    let changes_method = match response.status() {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => *method == Method::POST,
        StatusCode::SEE_OTHER => *method != Method::GET && *method != Method::HEAD,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => false,
        _ => return Ok(None),
    };
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    if order.body.is_gone() && !changes_method {
        return Ok(None);
    }
    let failed = |why: &'static str| ClientError::failed(Phase::Redirect, why);
    let location = location.to_str().map_err(|_| failed("the location is not a URI"))?;
    let uri = resolve(&order.head.uri, location).ok_or_else(|| failed("the location is not a URI"))?;
    let before = Origin::of(&order.head.uri).map_err(failed)?;
    let after = Origin::of(&uri).map_err(failed)?;
    Ok(Some(Redirect { uri, changes_method, changes_origin: before != after }))
}

impl Order {
    /// Changes the request to follow a redirect.
    pub(super) fn redirect(&mut self, uri: Uri, changes_method: bool, changes_origin: bool) {
        let headers = &mut self.head.headers;
        if changes_method {
            self.head.method = Method::GET;
            self.body = Payload::default();
            for name in [
                CONTENT_ENCODING,
                CONTENT_LANGUAGE,
                CONTENT_LENGTH,
                CONTENT_LOCATION,
                CONTENT_TYPE,
                TRANSFER_ENCODING,
            ] {
                headers.remove(name);
            }
        }
        if changes_origin {
            for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, HOST] {
                headers.remove(name);
            }
        }
        self.head.uri = uri;
    }
}

/// Resolves a reference against the URI of the request (RFC 3986, 5.2).
fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.split('#').next().unwrap_or_default();
    let scheme = base.scheme_str()?;
    let has_scheme = reference.split(['/', '?']).next().is_some_and(|first| first.contains(':'));
    let absolute = if has_scheme {
        reference.to_owned()
    } else if let Some(rest) = reference.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else {
        // Not with the name and the password of the base.
        let origin = Origin::of(base).ok()?;
        let (path, query) = match reference.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (reference, None),
        };
        let (path, query) = match path {
            "" => (base.path().to_owned(), query.or(base.query())),
            path if path.starts_with('/') => (without_dots(path), query),
            path => {
                let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
                (without_dots(&format!("{folder}/{path}")), query)
            }
        };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{origin}{path}{query}")
    };
    absolute.parse().ok()
}

/// Removes `.` and `..` from an absolute path.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let last = segments.len().saturating_sub(1);
    for (index, segment) in segments.into_iter().enumerate() {
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                // The end of a path that names a folder.
                if index == last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}
