//! Redirects, followed by hand: the headers and the body of a request stay with the server they are for.
//!
//! Owns the rules. A redirect never leaves TLS, and never leads to anything but HTTP.

use http::header::{AUTHORIZATION, COOKIE, LOCATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, Method};
use reqwest::{StatusCode, Url};

use super::error::FetchError;
use crate::model::address::Address;

/// The most redirects of one request.
const MOST: usize = 10;

/// One request on its way through redirects.
pub(super) struct Hop {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<bytes::Bytes>,
    /// Whether it stays with its server.
    pub(super) stays: bool,
}

impl Hop {
    /// Moves on to where a response leads; false if the response is the last one. The error says why it leads nowhere.
    fn follow(&mut self, status: StatusCode, headers: &HeaderMap) -> Result<bool, &'static str> {
        let redirects = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let Some(location) = headers.get(LOCATION).filter(|_| redirects) else { return Ok(false) };
        let location = location.to_str().map_err(|_| "its target is not an address")?;
        let mut url = self.url.join(location).map_err(|_| "its target is not an address")?;
        match (self.url.scheme(), url.scheme()) {
            (_, "https") | ("http", "http") => {}
            ("https", "http") => return Err("it leads from https to http"),
            _ => return Err("its target is not an `http://` or `https://` address"),
        }
        if status == StatusCode::SEE_OTHER && !matches!(self.method, Method::GET | Method::HEAD) {
            (self.method, self.body) = (Method::GET, None);
        }
        if url.origin() == self.url.origin() {
            // Cannot fail for http and https, which always have a host.
            let _ =
                url.set_username(self.url.username()).and_then(|()| url.set_password(self.url.password()));
        } else {
            if self.stays {
                return Err("it leads to another server");
            }
            if !matches!(self.method, Method::GET | Method::HEAD) {
                return Err("it sends an upload to another server");
            }
            for secret in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
                self.headers.remove(secret);
            }
        }
        self.url = url;
        Ok(true)
    }
}

/// Sends a request and follows its redirects. Returns the last response and the origin that gave it.
pub(super) async fn send(
    client: &reqwest::Client,
    address: &Address,
    mut hop: Hop,
) -> Result<(reqwest::Response, String), FetchError> {
    let refused = |why: &str| FetchError::Redirect { address: address.clone(), why: why.to_owned() };
    for _ in 0..=MOST {
        let mut request = client.request(hop.method.clone(), hop.url.clone()).headers(hop.headers.clone());
        if let Some(body) = &hop.body {
            request = request.body(body.clone());
        }
        let response = request.send().await.map_err(|error| FetchError::transfer(address, error))?;
        let origin = hop.url.origin().ascii_serialization();
        if !hop.follow(response.status(), response.headers()).map_err(refused)? {
            return Ok((response, origin));
        }
    }
    Err(refused("too many redirects"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(method: Method, url: &str) -> Hop {
        let headers = [AUTHORIZATION, COOKIE, http::header::ACCEPT]
            .map(|name| (name, http::HeaderValue::from_static("x")));
        let url = url.parse().expect("an address");
        Hop { method, url, headers: HeaderMap::from_iter(headers), body: Some("body".into()), stays: false }
    }

    fn follow(hop: &mut Hop, status: u16, target: &str) -> Result<bool, &'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, target.parse().expect("a header"));
        hop.follow(StatusCode::from_u16(status).expect("a status"), &headers)
    }

    #[test]
    fn login_stays_with_its_origin() {
        for (target, keeps) in [
            ("/b", true),
            ("https://a.test/b", true),
            ("https://a.test:443/b", true),
            ("https://a.test:444/b", false),
            ("https://b.a.test/b", false),
            ("//b.test/b", false),
        ] {
            let mut hop = hop(Method::GET, "https://me:pw@a.test/a");
            assert_eq!(follow(&mut hop, 307, target), Ok(true), "{target}");
            assert_eq!(hop.headers.contains_key(AUTHORIZATION), keeps, "{target}");
            assert_eq!(hop.headers.contains_key(COOKIE), keeps, "{target}");
            assert!(hop.headers.contains_key(http::header::ACCEPT), "{target}");
            assert_eq!(
                (hop.url.username() == "me", hop.url.password() == Some("pw")),
                (keeps, keeps),
                "{target}"
            );
        }
    }

    #[test]
    fn request_that_stays_follows_no_redirect_to_another_server() {
        let mut hop = Hop { stays: true, ..hop(Method::GET, "https://a.test/a") };
        assert_eq!(follow(&mut hop, 302, "/b"), Ok(true));
        for target in ["https://b.test/b", "https://a.test:444/b", "https://10.0.0.1/b"] {
            assert!(follow(&mut hop, 302, target).is_err(), "{target}");
        }
    }

    #[test]
    fn redirect_leaves_neither_tls_nor_http() {
        let mut secure = hop(Method::GET, "https://a.test:8443/a");
        assert!(
            follow(&mut secure, 302, "http://a.test:8443/a").expect_err("plain").contains("https to http")
        );
        assert!(follow(&mut secure, 302, "file:///etc/passwd").is_err());
        let mut plain = hop(Method::GET, "http://a.test/a");
        assert_eq!(follow(&mut plain, 302, "https://a.test/a"), Ok(true));
        assert!(!plain.headers.contains_key(AUTHORIZATION), "another port is another server");
    }

    #[test]
    fn body_goes_to_its_own_server_only() {
        let mut post = hop(Method::POST, "https://a.test/token");
        assert!(follow(&mut post, 307, "https://b.test/token").is_err());
        assert_eq!(follow(&mut post, 307, "/other"), Ok(true));
        assert_eq!((&post.method, post.body.is_some()), (&Method::POST, true));
        assert_eq!(follow(&mut post, 303, "https://b.test/done"), Ok(true));
        assert_eq!((&post.method, post.body), (&Method::GET, None));
    }

    #[test]
    fn other_statuses_are_the_last_response() {
        let mut last = hop(Method::GET, "https://a.test/a");
        for status in [200, 201, 202, 304, 401] {
            assert_eq!(follow(&mut last, status, "https://b.test/"), Ok(false), "{status}");
        }
        assert_eq!(last.url.host_str(), Some("a.test"));
    }
}
