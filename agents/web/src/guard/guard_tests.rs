use proptest::prelude::*;

use super::*;

fn guard(allow: &[&str]) -> Guard {
    let allow_hosts = allow.iter().map(|host| (*host).to_owned()).collect();
    Guard::new(&WebSettings { allow_hosts, ..WebSettings::default() }).unwrap()
}

#[test]
fn a_url_is_kept_in_one_form() {
    let at = guard(&[]).destination(" HTTPS://Bücher.Org./a b?x#part ").unwrap();
    assert_eq!(at.url.as_str(), "https://xn--bcher-kva.org/a%20b?x");
    assert_eq!((at.host.as_str(), at.reach), ("xn--bcher-kva.org:443", Reach::Public));
}

#[test]
fn a_named_host_is_named_at_its_port_or_at_the_usual_ones() {
    let guard = guard(&["127.0.0.1:9000", "*.corp.example", "[::1]", "wiki"]);
    let table = [
        ("http://127.0.0.1:9000/", Some(Reach::Named)),
        ("http://127.0.0.1/", None),
        ("http://a.corp.example/", Some(Reach::Named)),
        ("http://a.corp.example:9000/", None),
        ("http://[0:0::1]:8080/", Some(Reach::Named)),
        ("http://[::1]:9000/", None),
        ("http://wiki/", Some(Reach::Named)),
        ("http://wiki2/", None),
        ("https://a.org/", Some(Reach::Public)),
    ];
    for (url, reach) in table {
        assert_eq!(guard.destination(url).ok().map(|at| at.reach), reach, "{url}");
    }
}

#[test]
fn a_redirect_from_https_to_http_is_a_downgrade_wherever_it_leads() {
    let from = Url::parse("https://a.org/x").unwrap();
    let strict = guard(&["b.corp.example"]);
    for to in ["http://a.org/x", "http://b.corp.example/"] {
        assert!(matches!(strict.redirected(&from, Some(to)), Err(Refused::Downgrade(_))), "{to}");
    }
    assert_eq!(strict.redirected(&from, Some("y")).unwrap().url.as_str(), "https://a.org/y");
}

proptest! {
    #[test]
    fn whatever_is_given_is_judged_and_what_is_let_pass_is_of_the_web(text in "(https?:)?[/\\\\]{0,3}[a-z0-9.@:%\\[\\]#?-]{0,40}") {
        if let Ok(at) = guard(&[]).destination(&text) {
            prop_assert!(matches!(at.url.scheme(), "http" | "https"));
            prop_assert!(at.url.username().is_empty() && at.url.password().is_none() && at.url.fragment().is_none());
            // The host that rights are asked about is the one that is connected to.
            let named = format!("{}:{}", at.url.host_str().unwrap(), at.url.port_or_known_default().unwrap());
            prop_assert_eq!(named, at.host);
        }
    }

    #[test]
    fn an_address_is_judged_in_a_url_as_it_is_alone(bits: u32) {
        let address = std::net::Ipv4Addr::from_bits(bits);
        let is_let = |url: String| guard(&[]).destination(&url).is_ok();
        for url in [format!("http://{address}/"), format!("http://{bits}/"), format!("http://{bits:#x}/"), format!("http://{bits:#o}/").replace("0o", "0")] {
            prop_assert_eq!(is_let(url), is_public(IpAddr::V4(address)));
        }
    }
}
