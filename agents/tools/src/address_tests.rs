use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::is_public;

/// First address and length of every range that IANA lists as special-purpose, of multicast and of what is reserved, taken
/// from its tables of version 4 and 6. Apart from the tables that are tested.
const SPECIAL_V4: [(&str, u32); 20] = [
    ("0.0.0.0", 8),
    ("0.0.0.0", 32),
    ("10.0.0.0", 8),
    ("100.64.0.0", 10),
    ("127.0.0.0", 8),
    ("169.254.0.0", 16),
    ("172.16.0.0", 12),
    ("192.0.0.0", 24),
    ("192.0.0.170", 31),
    ("192.0.2.0", 24),
    ("192.31.196.0", 24),
    ("192.52.193.0", 24),
    ("192.88.99.0", 24),
    ("192.168.0.0", 16),
    ("192.175.48.0", 24),
    ("198.18.0.0", 15),
    ("198.51.100.0", 24),
    ("203.0.113.0", 24),
    ("224.0.0.0", 4),
    ("240.0.0.0", 4),
];

const SPECIAL_V6: [(&str, u32); 16] = [
    ("::", 128),
    ("::1", 128),
    ("::", 96),
    ("64:ff9b:1::", 48),
    ("100::", 64),
    ("100:0:0:1::", 64),
    ("2001::", 23),
    ("2001::", 32),
    ("2001:db8::", 32),
    ("2002::", 16),
    ("2620:4f:8000::", 48),
    ("3fff::", 20),
    ("5f00::", 16),
    ("fc00::", 7),
    ("fe80::", 10),
    ("ff00::", 8),
];

fn in_v4(first: &str, length: u32, rest: u32) -> Ipv4Addr {
    let mask = if length == 32 { 0 } else { u32::MAX >> length };
    Ipv4Addr::from_bits(first.parse::<Ipv4Addr>().unwrap().to_bits() | rest & mask)
}

fn in_v6(first: &str, length: u32, rest: u128) -> Ipv6Addr {
    let mask = if length == 128 { 0 } else { u128::MAX >> length };
    Ipv6Addr::from_bits(first.parse::<Ipv6Addr>().unwrap().to_bits() | rest & mask)
}

#[test]
fn the_ends_of_every_special_range_are_refused() {
    for (first, length) in SPECIAL_V4 {
        for rest in [0, 1, u32::MAX] {
            let address = in_v4(first, length, rest);
            assert!(!is_public(IpAddr::V4(address)), "{address} of {first}/{length}");
        }
    }
    for (first, length) in SPECIAL_V6 {
        for rest in [0, 1, u128::MAX] {
            let address = in_v6(first, length, rest);
            assert!(!is_public(IpAddr::V6(address)), "{address} of {first}/{length}");
        }
    }
}

#[test]
fn addresses_beside_special_ranges_are_public() {
    for public in [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450:4001:800::200e",
        "2001:200::1",
        "64:ff9b::101:101",
        "::ffff:1.1.1.1",
    ] {
        assert!(is_public(public.parse().unwrap()), "{public}");
    }
}

#[test]
fn private_addresses_within_addresses_of_version_6_are_refused() {
    for hidden in [
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a00:1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2a00:1450::5efe:7f00:1",
        "2a00:1450::200:5efe:10.0.0.1",
        "fd00:ec2::254",
        "168.63.129.16",
    ] {
        assert!(!is_public(hidden.parse().unwrap()), "{hidden}");
    }
}

proptest! {
    #[test]
    fn nothing_in_a_special_range_is_public(at in 0..SPECIAL_V4.len(), rest: u32, at_6 in 0..SPECIAL_V6.len(), rest_6: u128) {
        let (first, length) = SPECIAL_V4[at];
        let address = in_v4(first, length, rest);
        prop_assert!(!is_public(IpAddr::V4(address)));
        prop_assert!(!is_public(IpAddr::V6(address.to_ipv6_mapped())));
        prop_assert!(!is_public(IpAddr::V6(address.to_ipv6_compatible())));
        let (first, length) = SPECIAL_V6[at_6];
        prop_assert!(!is_public(IpAddr::V6(in_v6(first, length, rest_6))));
    }

    #[test]
    fn what_the_standard_library_knows_as_private_is_never_public(bits: u32, bits_6: u128) {
        let address = Ipv4Addr::from_bits(bits);
        let is_special = address.is_private() || address.is_loopback() || address.is_link_local()
            || address.is_multicast() || address.is_documentation() || address.is_unspecified() || address.is_broadcast();
        prop_assert!(!(is_special && is_public(IpAddr::V4(address))));
        let address = Ipv6Addr::from_bits(bits_6);
        let is_special = address.is_loopback() || address.is_multicast() || address.is_unspecified()
            || address.is_unique_local() || address.is_unicast_link_local();
        prop_assert!(!(is_special && is_public(IpAddr::V6(address))));
    }

    #[test]
    fn an_address_is_public_or_not_however_it_is_written(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        let plain = is_public(IpAddr::V4(address));
        prop_assert_eq!(plain, is_public(IpAddr::V6(address.to_ipv6_mapped())));
        let translated = Ipv6Addr::from_bits(0x64_ff9b_u128 << 96 | u128::from(bits));
        prop_assert_eq!(plain, is_public(IpAddr::V6(translated)));
    }
}
