//! URLs that must not be reached, each with what is said of it. `FAR` is the port of a site that counts who connects.

use super::support::{Site, Tools, settings};

const PRIVATE: &str = "no public address";
const LOCAL: &str = "private network";
const NO_URL: &str = "no URL";
const SCHEME: &str = "only http and https";
const USER: &str = "user name or a password";

const HOSTILE: [(&str, &str); 74] = [
    ("http://127.0.0.1:FAR/", PRIVATE),
    ("http://127.1:FAR/", PRIVATE),
    ("http://127.0.1:FAR/", PRIVATE),
    ("http://2130706433:FAR/", PRIVATE),
    ("http://0x7f000001:FAR/", PRIVATE),
    ("http://0x7f.1:FAR/", PRIVATE),
    ("http://0177.0.0.1:FAR/", PRIVATE),
    ("http://017700000001:FAR/", PRIVATE),
    ("http://0x7f.0x0.0x0.0x1:FAR/", PRIVATE),
    ("http://127.0.0.1.:FAR/", PRIVATE),
    ("http://0:FAR/", PRIVATE),
    ("http://0.0.0.0:FAR/", PRIVATE),
    ("http://10.0.0.1:FAR/", PRIVATE),
    ("http://172.16.9.9:FAR/", PRIVATE),
    ("http://192.168.1.1:FAR/", PRIVATE),
    ("http://169.254.169.254:FAR/latest/meta-data/", PRIVATE),
    ("http://0xa9fea9fe:FAR/", PRIVATE),
    ("http://100.100.100.200:FAR/", PRIVATE),
    ("http://168.63.129.16:FAR/", PRIVATE),
    ("http://224.0.0.1:FAR/", PRIVATE),
    ("http://255.255.255.255:FAR/", PRIVATE),
    ("http://[::1]:FAR/", PRIVATE),
    ("http://[::]:FAR/", PRIVATE),
    ("http://[0:0:0:0:0:0:0:1]:FAR/", PRIVATE),
    ("http://[::ffff:127.0.0.1]:FAR/", PRIVATE),
    ("http://[::ffff:7f00:1]:FAR/", PRIVATE),
    ("http://[::127.0.0.1]:FAR/", PRIVATE),
    ("http://[64:ff9b::127.0.0.1]:FAR/", PRIVATE),
    ("http://[64:ff9b:1::7f00:1]:FAR/", PRIVATE),
    ("http://[2002:7f00:1::]:FAR/", PRIVATE),
    ("http://[2001:0:7f00:1::]:FAR/", PRIVATE),
    ("http://[fe80::1]:FAR/", PRIVATE),
    ("http://[fd00:ec2::254]:FAR/", PRIVATE),
    ("http://[ff02::1]:FAR/", PRIVATE),
    ("http://[fe80::1%25eth0]:FAR/", NO_URL),
    ("http://localhost:FAR/", LOCAL),
    ("http://LocalHost:FAR/", LOCAL),
    ("http://localhost.:FAR/", LOCAL),
    ("http://a.localhost:FAR/", LOCAL),
    ("http://localhost.localdomain:FAR/", LOCAL),
    ("http://ip6-localhost:FAR/", LOCAL),
    ("http://metadata:FAR/", LOCAL),
    ("http://metadata.google.internal:FAR/", LOCAL),
    ("http://host.docker.internal:FAR/", LOCAL),
    ("http://printer.local:FAR/", LOCAL),
    ("http://router.lan:FAR/", LOCAL),
    ("http://nas.home.arpa:FAR/", LOCAL),
    ("http://wiki.corp:FAR/", LOCAL),
    ("http://loc%61lhost:FAR/", LOCAL),
    ("http://127%2e0%2e0%2e1:FAR/", PRIVATE),
    ("http://%31%32%37.0.0.1:FAR/", PRIVATE),
    ("http://１２７.０.０.１:FAR/", PRIVATE),
    ("http://①②⑦.0.0.1:FAR/", PRIVATE),
    ("http://127。0。0。1:FAR/", PRIVATE),
    ("http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:FAR/", LOCAL),
    ("http:127.0.0.1:FAR/", PRIVATE),
    ("http:\\\\127.0.0.1:FAR\\", PRIVATE),
    ("http:///127.0.0.1:FAR/", PRIVATE),
    ("http://127.0.0.1:FAR\\@site.org/", PRIVATE),
    (" \thttp://12\n7.0.0.1:FAR/", PRIVATE),
    ("http://site.org@127.0.0.1:FAR/", USER),
    ("http://user:password@site.org:FAR/", USER),
    ("http://site.org:FAR:80@127.0.0.1/", USER),
    ("http://site.org:22/", "port 22 is not reached"),
    ("http://site.org:0/", "there is no port 0"),
    ("http://site.org:99999/", NO_URL),
    ("http://site..org:FAR/", NO_URL),
    ("http://-.org:FAR/", NO_URL),
    ("file:///etc/passwd", SCHEME),
    ("gopher://127.0.0.1:FAR/_x", SCHEME),
    ("ftp://127.0.0.1:FAR/", SCHEME),
    ("data:text/html,hello", SCHEME),
    ("javascript:alert(1)", SCHEME),
    ("//127.0.0.1:FAR/", NO_URL),
];

#[tokio::test]
async fn hostile_urls_are_refused_by_their_form_and_nobody_is_connected_to_or_looked_up() {
    let far = Site::of("text/plain", "secret").await;
    let tools = Tools::new(settings(&[far.port]));
    for (url, said) in HOSTILE {
        let url = url.replace("FAR", &far.port.to_string());
        let failure = tools.fetch(&url).await.expect_err(&url).to_string();
        assert!(failure.contains(said), "{url}: {failure}");
    }
    for url in ["http://", "", "nonsense", &format!("http://site.org:{}/{}", far.port, "a".repeat(5000))] {
        assert!(tools.fetch(url).await.unwrap_err().to_string().contains(NO_URL), "{url}");
    }
    let long = format!("http://{}.org:{}/", "a".repeat(64), far.port);
    assert!(tools.fetch(&long).await.is_err());
    assert_eq!((far.connections(), tools.names.lookups()), (0, 0));
}

#[tokio::test]
async fn a_setting_lifts_the_check_of_addresses_for_its_hosts_alone() {
    let (meant, other) = (Site::of("text/plain", "for us").await, Site::of("text/plain", "for others").await);
    let mut settings = settings(&[80, 443]);
    settings.allow_hosts = vec![format!("127.0.0.1:{}", meant.port)];
    let tools = Tools::new(settings);
    assert!(tools.fetch(&format!("http://127.0.0.1:{}/", meant.port)).await.unwrap().contains("for us"));
    assert!(tools.fetch(&format!("http://2130706433:{}/", meant.port)).await.unwrap().contains("for us"));
    assert!(tools.fetch(&format!("http://127.0.0.1:{}/", other.port)).await.is_err());
    assert!(tools.fetch(&format!("http://127.0.0.2:{}/", meant.port)).await.is_err());
    assert!(tools.fetch(&format!("http://localhost:{}/", meant.port)).await.is_err());
    assert_eq!((meant.connections(), other.connections()), (2, 0));
}

#[tokio::test]
async fn a_setting_that_names_no_host_is_told_and_nothing_is_fetched() {
    let mut settings = settings(&[80]);
    settings.allow_hosts = vec!["not a host".to_owned()];
    let failure = Tools::new(settings).fetch("http://site.org/").await.unwrap_err().to_string();
    assert!(failure.contains("tool.web.allow_hosts"), "{failure}");
}

#[tokio::test]
async fn what_needs_a_setting_is_no_tool_without_it() {
    assert_eq!(Tools::new(muster_tools::settings::WebSettings::default()).names(), ["fetch", "fetch_file"]);
}
