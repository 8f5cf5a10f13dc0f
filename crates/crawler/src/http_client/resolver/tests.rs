use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use tokio::net::UdpSocket;

use super::*;

fn settings(resolve: &[&str]) -> EngineSettings {
    EngineSettings { resolve: resolve.iter().map(|s| (*s).to_owned()).collect(), ..EngineSettings::default() }
}

/// The answer of the scripted name server to every question.
#[derive(Clone, Debug)]
pub(crate) enum Says {
    Addresses(Vec<IpAddr>, u32),
    NoSuchName,
    Nothing,
}

/// A name server on loopback that counts its questions.
pub(crate) struct NameServer {
    port: u16,
    questions: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl NameServer {
    pub(crate) async fn start(says: Says) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let port = socket.local_addr().expect("bound").port();
        let questions = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&questions);
        let task = tokio::spawn(async move {
            let mut packet = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut packet).await {
                counter.fetch_add(1, Ordering::SeqCst);
                if let Some(answer) = answer(&packet[..length], &says) {
                    socket.send_to(&answer, from).await.expect("loopback");
                }
            }
        });
        Self { port, questions, task }
    }

    fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }

    /// A resolver that asks only this server.
    pub(crate) fn resolver(&self, timeout: Duration, size: usize) -> Resolver {
        let mut connection = ConnectionConfig::udp();
        connection.port = self.port;
        let server = NameServerConfig::new("127.0.0.1".parse().unwrap(), true, vec![connection]);
        let config = ResolverConfig::from_parts(None, vec![], vec![server]);
        let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        let system = configured(builder, timeout);
        assert!(system.is_some());
        Resolver { system, fixed: vec![], cache: Mutex::new(Cache::new(size)), timeout }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The answer to a question of one name (RFC 1035, 4.1).
fn answer(question: &[u8], says: &Says) -> Option<Vec<u8>> {
    const A: u16 = 1;
    const AAAA: u16 = 28;
    let end = 12 + question[12..].iter().position(|b| *b == 0)? + 5;
    let kind = u16::from_be_bytes([question[end - 4], question[end - 3]]);
    let (code, records) = match says {
        Says::Nothing => return None,
        Says::NoSuchName => (3, vec![]),
        Says::Addresses(addresses, ttl) => {
            let mut records = Vec::new();
            for address in addresses {
                let (of, data) = match address {
                    IpAddr::V4(ip) => (A, ip.octets().to_vec()),
                    IpAddr::V6(ip) => (AAAA, ip.octets().to_vec()),
                };
                if of == kind {
                    let mut record = vec![0xc0, 12, 0, of.to_be_bytes()[1], 0, 1];
                    record.extend_from_slice(&ttl.to_be_bytes());
                    record.extend_from_slice(&[0, u8::try_from(data.len()).unwrap()]);
                    record.extend_from_slice(&data);
                    records.push(record);
                }
            }
            (0, records)
        }
    };
    let count = u8::try_from(records.len()).unwrap();
    let mut packet = vec![question[0], question[1], 0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0];
    packet.extend_from_slice(&question[12..end]);
    packet.extend(records.concat());
    Some(packet)
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Moves the clock of the runtime without waiting.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

const PATIENT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn both_families_are_asked_and_answers_are_kept_for_their_time() {
    let server =
        NameServer::start(Says::Addresses(ips(&["192.0.2.1", "2001:db8::1", "192.0.2.2"]), 300)).await;
    let resolver = server.resolver(PATIENT, 100);
    let expected = ["[2001:db8::1]:80", "192.0.2.1:80", "192.0.2.2:80"].map(|a| a.parse().unwrap());
    for _ in 0..3 {
        assert_eq!(resolver.addresses("a.example", 80).await.expect("known"), expected);
    }
    assert_eq!(server.questions(), 2, "A and AAAA, once");
    assert_eq!(resolver.address("A.example.").await, Some("2001:db8::1".parse().unwrap()));
    pass(Duration::from_secs(290)).await;
    resolver.addresses("a.example", 443).await.expect("known");
    assert_eq!(server.questions(), 2, "still good");
    pass(Duration::from_secs(20)).await;
    resolver.addresses("a.example", 443).await.expect("known");
    assert_eq!(server.questions(), 4, "asked again");
}

#[tokio::test]
async fn short_lives_are_lengthened_and_failures_are_kept_for_a_while() {
    let server = NameServer::start(Says::Addresses(ips(&["192.0.2.1"]), 1)).await;
    let resolver = server.resolver(PATIENT, 100);
    resolver.addresses("a.example", 80).await.expect("known");
    pass(Duration::from_secs(59)).await;
    resolver.addresses("a.example", 80).await.expect("known");
    assert_eq!(server.questions(), 2);
    pass(Duration::from_secs(2)).await;
    resolver.addresses("a.example", 80).await.expect("known");
    assert_eq!(server.questions(), 4);

    let server = NameServer::start(Says::NoSuchName).await;
    let resolver = server.resolver(PATIENT, 100);
    for _ in 0..3 {
        let failure = resolver.addresses("gone.example", 80).await.expect_err("no such name");
        assert_eq!(failure.kind(), FetchErrorKind::Dns);
        assert!(failure.to_string().starts_with("resolving gone.example: "), "{failure}");
    }
    let asked = server.questions();
    assert!(asked <= 2, "{asked}");
    pass(Duration::from_secs(31)).await;
    resolver.addresses("gone.example", 80).await.expect_err("no such name");
    assert!(server.questions() > asked);
}

#[tokio::test]
async fn a_silent_server_is_a_dns_error_in_time_and_is_asked_again() {
    let server = NameServer::start(Says::Nothing).await;
    let resolver = server.resolver(Duration::from_millis(150), 100);
    for _ in 0..2 {
        let before = server.questions();
        let failure = resolver.addresses("a.example", 80).await.expect_err("silence");
        assert_eq!(failure.kind(), FetchErrorKind::Dns);
        assert!(server.questions() > before, "silence is not kept");
    }
}

#[tokio::test]
async fn fixed_addresses_count_for_their_port_only() {
    let entries = ["a.example:80:203.0.113.5", "a.example:80:[2001:db8::1]", "A.example.:81:203.0.113.6"];
    let resolver = Resolver::new(&settings(&entries)).expect("valid");
    let found = resolver.addresses("a.example", 80).await.expect("fixed");
    assert_eq!(found, ["203.0.113.5:80", "[2001:db8::1]:80"].map(|a| a.parse::<SocketAddr>().unwrap()));
    let found = resolver.addresses("a.EXAMPLE.", 81).await.expect("fixed");
    assert_eq!(found, ["203.0.113.6:81".parse::<SocketAddr>().unwrap()]);
    assert_eq!(resolver.address("a.example").await, Some("203.0.113.5".parse().unwrap()));
    assert_eq!(resolver.address("[::1]").await, Some("::1".parse().unwrap()));
}

#[test]
fn a_bad_entry_is_an_error_that_names_it() {
    for entry in
        ["", "a.example", "a.example:80", "a.example:x:1.2.3.4", "a.example:80:b", "1.2.3.4:80:1.2.3.5"]
    {
        let error = Resolver::new(&settings(&[entry])).expect_err(entry);
        assert!(error.is_usage() && error.to_string().contains("resolve"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_cache_is_bounded_and_forgets_what_is_old() {
    let mut cache = Cache::new(10);
    let answer: LookupResult = Ok(Arc::from(ips(&["192.0.2.1"])));
    let now = Instant::now();
    for n in 0..1_000 {
        cache.put(&format!("host{n}"), answer.clone(), now + MIN_TTL);
        assert!(cache.get("host0", now).is_some(), "what is asked for stays");
    }
    assert!(cache.young.len() + cache.old.len() <= 10);
    assert!(cache.get("host998", now).is_some());
    assert!(cache.get("host500", now).is_none());
    assert!(cache.get("host998", now + MIN_TTL).is_none(), "expired");
    let mut none = Cache::new(0);
    none.put("a", answer, now + MIN_TTL);
    assert!(none.get("a", now).is_none());
}
