//! Which addresses programs may reach: those of the internet, and none of the machine, of its neighbours, or of who runs it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the internet at large. The rest is what the registries of special addresses (RFC 6890 and
/// its followers) keep apart, and multicast.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let kept_apart = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // Between a provider and its customers (RFC 6598), for protocols (RFC 6890), for measurements (RFC 2544), and
        // once a way into the sixth version (RFC 7526).
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19))
        || (a == 192 && b == 88 && c == 99);
    !kept_apart
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let [first, second, ..] = parts;
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    // Addresses of the fourth version inside, which a gateway would take out: translated (RFC 6052) and 6to4 (RFC 3056).
    if first == 0x64 && second == 0xff9b {
        let [.., high, low] = parts;
        return parts[2..6].iter().all(|part| *part == 0) && is_public_v4(from_parts(high, low));
    }
    if first == 0x2002 {
        return is_public_v4(from_parts(second, parts[2]));
    }
    // What is given out is 2000::/3; of it, tunnels (2001::/32), other things of protocols (2001:0000::/23) and examples
    // (2001:db8::/32, 3fff::/20) are kept apart.
    let given_out = first & 0xe000 == 0x2000;
    let kept_apart =
        (first == 0x2001 && (second < 0x200 || second == 0xdb8)) || (first == 0x3fff && second < 0x1000);
    given_out && !kept_apart
}

fn from_parts(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn nothing_but_the_internet_at_large_is_public() {
        let public = [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "100.128.0.1",
            "192.0.1.1",
            "2606:4700::1111",
            "2002:101:101::",
            "64:ff9b::1.1.1.1",
            "::ffff:1.1.1.1",
        ];
        let others = [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ];
        for (list, expected) in [(public.as_slice(), true), (others.as_slice(), false)] {
            for address in list {
                assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
            }
        }
    }
}
