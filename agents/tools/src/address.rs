//! Which addresses are public. Pure.
//!
//! What IANA lists as special-purpose is not: <https://www.iana.org/assignments/iana-ipv4-special-registry>,
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>, with multicast and what is reserved. Of version 6, only what
//! is given out to the Internet (2000::/3) can be public at all. An address that carries one of version 4 within is judged by
//! that where translators are usual (NAT64), and refused where they are out of use (6to4, Teredo, IPv4-compatible).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses: those whose first bits are the same.
#[derive(Debug, Clone, Copy)]
struct Range<Bits> {
    first: Bits,
    length: u32,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u32) -> Range<u32> {
    Range { first: u32::from_be_bytes([a, b, c, d]), length }
}

const fn v6(first: [u16; 4], length: u32) -> Range<u128> {
    let [a, b, c, d] = first;
    let address = Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0);
    Range { first: address.to_bits(), length }
}

const NOT_PUBLIC_V4: [Range<u32>; 20] = [
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    v4(168, 63, 129, 16, 32), // Metadata of one large cloud, at an address that looks public.
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(192, 31, 196, 0, 24),
    v4(192, 52, 193, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    v4(192, 175, 48, 0, 24),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
    v4(255, 255, 255, 255, 32),
];

/// Those within 2000::/3; nothing outside of it is public.
const NOT_PUBLIC_V6: [Range<u128>; 5] = [
    v6([0x2001, 0, 0, 0], 23), // Protocol assignments, Teredo among them.
    v6([0x2001, 0xdb8, 0, 0], 32),
    v6([0x2002, 0, 0, 0], 16),
    v6([0x2620, 0x4f, 0x8000, 0], 48),
    v6([0x3fff, 0, 0, 0], 20),
];

const GIVEN_OUT: Range<u128> = v6([0x2000, 0, 0, 0], 3);

/// The prefix of translators from version 6 to version 4, RFC 6052.
const NAT64: Range<u128> = v6([0x64, 0xff9b, 0, 0], 96);

/// Addresses of version 4 written as version 6, RFC 4291.
const MAPPED: Range<u128> = Range { first: 0xffff_0000_0000, length: 96 };

/// Whether whoever is at this address is on the public Internet.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    !NOT_PUBLIC_V4.iter().any(|range| bits >> (32 - range.length) == range.first >> (32 - range.length))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    if holds(MAPPED, bits) || holds(NAT64, bits) {
        return is_public_v4(within(bits));
    }
    // ISATAP puts an address of version 4 behind 5efe in any prefix, RFC 5214.
    let is_isatap = (bits >> 32) & 0xfcff_ffff == 0x5efe;
    holds(GIVEN_OUT, bits) && !is_isatap && !NOT_PUBLIC_V6.iter().any(|range| holds(*range, bits))
}

const fn holds(range: Range<u128>, bits: u128) -> bool {
    bits >> (128 - range.length) == range.first >> (128 - range.length)
}

/// The address of version 4 in the last bits.
#[expect(clippy::cast_possible_truncation, reason = "the last 32 bits are meant")]
const fn within(bits: u128) -> Ipv4Addr {
    Ipv4Addr::from_bits(bits as u32)
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
