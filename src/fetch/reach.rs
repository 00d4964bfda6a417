//! How near a server is: everybody's network, a private one, this machine. A server must not send this program to one nearer than
//! itself: what answers there trusts whoever is near.
//!
//! Judged on addresses that are connected to. Names are resolved here, and the client connects to what this gives it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// How near an address is; the nearest is the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The Internet.
    Public,
    /// A network of its own: a company's.
    Private,
    /// This machine, its link, or an address that names no machine.
    Local,
}

impl Reach {
    /// The reach of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => match embedded(address) {
                Some(address) => of_v4(address),
                None => of_v6(address),
            },
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Reach {
    let [a, b, c, _] = address.octets();
    let is_local = address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a, b, c) == (192, 0, 0)
        || (a, b & 0xfe) == (198, 18);
    // 100.64.0.0/10 is shared by a provider and its customers.
    let is_private = address.is_private() || (a, b & 0xc0) == (100, 64);
    match (is_local, is_private) {
        (true, _) => Reach::Local,
        (false, true) => Reach::Private,
        (false, false) => Reach::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Reach {
    let first = address.segments()[0];
    if address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || (first & 0xffc0) == 0xfe80
    {
        Reach::Local
    } else if (first & 0xfe00) == 0xfc00 || (first & 0xffc0) == 0xfec0 {
        Reach::Private
    } else {
        Reach::Public
    }
}

/// The address of version 4 that one of version 6 stands for: mapped, compatible, translated (`64:ff9b::/96`) or 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(of(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] => (high != 0).then(|| of(high, low)),
        _ => None,
    }
}

/// The address that a URL names by itself, without a name.
pub(super) fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Resolves names and leaves out addresses that are nearer than allowed. Another name than `host` is that of a proxy.
pub(super) struct Within {
    pub(super) host: String,
    pub(super) most: Reach,
}

impl Resolve for Within {
    fn resolve(&self, name: Name) -> Resolving {
        let most = (name.as_str() == self.host).then_some(self.most);
        let name = name.as_str().to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let is_allowed = |address: &SocketAddr| most.is_none_or(|most| Reach::of(address.ip()) <= most);
            let (allowed, refused): (Vec<_>, Vec<_>) = found.partition(is_allowed);
            if allowed.is_empty() && !refused.is_empty() {
                let text = format!("{name} is in a nearer network than the server that names it");
                return Err(std::io::Error::other(text).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearer_addresses_have_a_nearer_reach_however_they_are_written() {
        for (text, expected) in [
            ("8.8.8.8", Reach::Public),
            ("172.32.0.1", Reach::Public),
            ("100.128.0.1", Reach::Public),
            ("2001:4860:4860::8888", Reach::Public),
            ("64:ff9b::808:808", Reach::Public),
            ("10.1.2.3", Reach::Private),
            ("172.16.0.1", Reach::Private),
            ("192.168.1.1", Reach::Private),
            ("100.64.0.1", Reach::Private),
            ("fd00::1", Reach::Private),
            ("::ffff:10.0.0.1", Reach::Private),
            ("64:ff9b::a00:1", Reach::Private),
            ("2002:a00:1::1", Reach::Private),
            ("127.0.0.1", Reach::Local),
            ("127.9.9.9", Reach::Local),
            ("0.0.0.0", Reach::Local),
            ("169.254.169.254", Reach::Local),
            ("::1", Reach::Local),
            ("::", Reach::Local),
            ("::ffff:127.0.0.1", Reach::Local),
            ("::127.0.0.1", Reach::Local),
            ("fe80::1", Reach::Local),
            ("64:ff9b::a9fe:a9fe", Reach::Local),
            ("255.255.255.255", Reach::Local),
            ("224.0.0.1", Reach::Local),
        ] {
            assert_eq!(Reach::of(text.parse().expect(text)), expected, "{text}");
        }
    }

    #[test]
    fn address_in_a_url_is_seen_however_it_is_written() {
        for url in [
            "https://127.0.0.1/t",
            "https://2130706433/t",
            "https://0x7f.1/t",
            "https://[::1]/t",
            "https://127.1:8443/",
        ] {
            let found = literal(&url.parse().expect(url)).expect(url);
            assert_eq!(Reach::of(found), Reach::Local, "{url}");
        }
        assert_eq!(literal(&"https://auth.test/t".parse().expect("a URL")), None);
    }

    #[tokio::test]
    async fn name_of_this_machine_is_not_resolved_for_a_server_elsewhere() {
        let resolve = |host: &str, most| {
            let within = Within { host: host.to_owned(), most };
            within.resolve("localhost".parse().expect("a name"))
        };
        for most in [Reach::Public, Reach::Private] {
            let error = resolve("localhost", most).await.err().expect("refused").to_string();
            assert!(error.contains("nearer network"), "{error}");
        }
        assert!(resolve("localhost", Reach::Local).await.expect("allowed").next().is_some());
        assert!(resolve("auth.test", Reach::Public).await.expect("a proxy").next().is_some());
    }
}
