use super::*;
use muster_shared::flow::rights::Allowed;
use muster_shared::flow::{Grantor, Rights};

fn rules(hosts: &[&str], rights: TaskRights) -> Rules {
    let hosts = hosts.iter().map(|host| HostPattern::read(host).unwrap()).collect();
    Rules { hosts, rights: Arc::new(rights), connections: 8, traffic: 1000 }
}

fn target(host: &str, port: u16) -> Target {
    Target { host: host.to_owned(), port }
}

#[test]
fn a_host_is_reached_only_where_it_was_granted_and_the_task_may() {
    let open = TaskRights::default();
    let only = Rights { hosts: Allowed::read(["b.org"]).unwrap(), ..Rights::default() };
    let narrow = TaskRights::default().narrowed_by(Grantor::Goal, &only);
    let table = [
        (rules(&["a.org"], open.clone()), target("a.org", 443), true),
        (rules(&["a.org:443"], open.clone()), target("a.org", 80), false),
        (rules(&["*.a.org"], open.clone()), target("x.a.org", 80), true),
        (rules(&["*.a.org"], open.clone()), target("a.org", 80), false),
        (rules(&["a.org"], open.clone()), target("a.org.evil.org", 80), false),
        (rules(&[], open), target("a.org", 443), false),
        (rules(&["a.org", "b.org"], narrow.clone()), target("a.org", 443), false),
        (rules(&["a.org", "b.org"], narrow), target("b.org", 443), true),
    ];
    for (rules, target, expected) in table {
        assert_eq!(rules.allow(&target).is_ok(), expected, "{target} {rules:?}");
    }
}

#[test]
fn an_address_that_is_not_public_is_meant_only_by_its_own_number() {
    let rules = rules(&["a.org", "127.0.0.1:80", "[::1]", "*.b.org"], TaskRights::default());
    let table = [
        (target("a.org", 80), "1.1.1.1", true),
        (target("a.org", 80), "127.0.0.1", false),
        (target("a.org", 80), "169.254.169.254", false),
        (target("x.b.org", 80), "10.0.0.1", false),
        (target("127.0.0.1", 80), "127.0.0.1", true),
        (target("127.0.0.1", 81), "127.0.0.1", false),
        (target("[::1]", 99), "::1", true),
        (target("a.org", 80), "::ffff:127.0.0.1", false),
    ];
    for (target, address, expected) in table {
        assert_eq!(rules.allow_address(&target, address.parse().unwrap()), expected, "{target} {address}");
    }
}
