//! Servers that are no etcd, or no good one.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ironorb_agent::registry::{
    ShareFault, SharedEntry, SharedKey, SharedLease, SharedStore as _, Told, Write,
};

use super::*;

/// A server whose answers a function gives. A connection has one answer.
struct Server {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (is_over, asked) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (over, count) = (is_over.clone(), asked.clone());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                count.fetch_add(1, Ordering::SeqCst);
                let mut stream = stream.unwrap();
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
                    request.push(byte[0]);
                }
                let request = String::from_utf8(request).unwrap();
                answer(request.split(' ').nth(1).unwrap_or_default(), &mut stream);
                // Reads the rest until the client hangs up, lest a reset take the answer away.
                let _ = stream.shutdown(std::net::Shutdown::Write);
                while stream.read(&mut [0; 512]).is_ok_and(|count| count > 0) {}
            }
        });
        Server { address, is_over, asked, thread: Some(thread) }
    }

    /// A server that gives each answer with the status 200.
    fn of_json(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Server {
        Server::start(move |path, stream| {
            let body = answer(path);
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}");
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn store(servers: &[&Server]) -> EtcdStore {
    store_with(servers, Duration::from_secs(120))
}

fn store_with(servers: &[&Server], timeout: Duration) -> EtcdStore {
    let options = EtcdOptions { timeout, ..EtcdOptions::default() };
    EtcdStore::new(servers.iter().map(|server| server.address.to_string()), options).unwrap()
}

#[track_caller]
fn fault<T>(outcome: Result<T, ShareFault>) -> String {
    match outcome {
        Err(ShareFault::Unavailable(why)) => why,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was believed"),
    }
}

const LEASE: SharedLease = SharedLease { id: 1, lasts: Duration::from_secs(5) };

fn put(is_exclusive: bool) -> Write {
    let key = SharedKey { name: "n".into(), agent: 1, owner: 1, reference: "r".into(), is_exclusive };
    Write::Put(SharedEntry { key, properties: Box::default() })
}

#[test]
fn answers_that_make_no_sense_are_faults_of_the_store() {
    for answer in
        ["", "{", "[]", "null", "7", r#"{"ID":{}}"#, r#"{"ID":"x"}"#, "{}", r#"{"ID":"5","TTL":"0"}"#]
    {
        let server = Server::of_json(move |_| answer.to_owned());
        fault(store(&[&server]).begin(1));
    }
    for answer in ["", "{", r#"{"error":{"message":"no leader","code":14}}"#, r#"{"result":{"TTL":"x"}}"#] {
        let server = Server::of_json(move |_| answer.to_owned());
        fault(store(&[&server]).renew(LEASE));
    }
    let server = Server::of_json(|_| r#"{"result":{"ID":"1"}}"#.to_owned());
    assert_eq!(store(&[&server]).renew(LEASE), Err(ShareFault::LeaseEnded), "it has no time to live");
    let server = Server::of_json(|_| r#"{"kvs":[{"key":"%%%"}]}"#.to_owned());
    fault(store(&[&server]).read(10));
    let deep = "[".repeat(100_000);
    let server = Server::of_json(move |_| deep.clone());
    fault(store(&[&server]).read(10));
}

#[test]
fn a_transaction_that_fails_without_a_reason_gives_no_name_away() {
    // It has neither succeeded nor does it know the agent.
    let server = Server::of_json(|_| "{}".to_owned());
    assert_eq!(store(&[&server]).write(1, LEASE, &[put(false)]), Err(ShareFault::LeaseEnded));
    assert_eq!(store(&[&server]).write(1, LEASE, &[put(true)]), Err(ShareFault::LeaseEnded));
    // It knows the agent, and says that something has changed, each time.
    let known = wire::ordered(0);
    let answer = format!(r#"{{"responses":[{{"response_range":{{"kvs":[{{"value":"{known}"}}]}}}}]}}"#);
    let server = Server::of_json(move |_| answer.clone());
    let outcome = store(&[&server]).write(1, LEASE, &[put(false)]);
    assert!(matches!(outcome, Ok(ref written) if **written == [Written::Refused]), "{outcome:?}");
    // A later write has been carried out.
    let known = wire::ordered(1 << 40);
    let answer = format!(r#"{{"responses":[{{"response_range":{{"kvs":[{{"value":"{known}"}}]}}}}]}}"#);
    let server = Server::of_json(move |_| answer.clone());
    assert!(fault(store(&[&server]).write(1, LEASE, &[put(false)])).contains("overtaken"));
}

#[test]
fn what_has_no_end_is_cut_off() {
    let endless = |path: &str, stream: &mut TcpStream| {
        let head = match path {
            "/head" => "HTTP/1.1 200 OK\r\nX: ",
            _ => "HTTP/1.1 200 OK\r\n\r\n",
        };
        let _ = stream.write_all(head.as_bytes());
        while stream.write_all(&[b'x'; 64 * 1024]).is_ok() {}
    };
    let server = Server::start(endless);
    let store = store(&[&server]);
    assert!(fault(store.read(10)).contains("larger than 16777216 bytes"));
    assert!(fault(store.members.ask::<Value>("/head", &json!({}))).contains("larger than 32768 bytes"));
    assert!(fault(store.watch(1)).contains("larger than 16777216 bytes"), "a line of a watch");
}

#[test]
fn pages_that_never_end_are_given_up() {
    // The same page again and again.
    let key = wire::text(b"/ironorb/names/shared/n\x001\x002\x00r");
    let value = wire::text(b"[]");
    let answer =
        format!(r#"{{"header":{{"revision":"7"}},"kvs":[{{"key":"{key}","value":"{value}"}}],"more":true}}"#);
    let server = Server::of_json(move |_| answer.clone());
    let (all, revision) = store(&[&server]).read(20).unwrap();
    assert_eq!((all.len(), revision, server.asked()), (20, 7, 20));
}

#[test]
fn a_member_that_says_nothing_is_left_for_the_next() {
    let silent = Server::start(|_, stream| {
        let _ = stream.read(&mut [0; 4096]);
        // Until the client gives up.
        while stream.read(&mut [0; 512]).is_ok_and(|count| count > 0) {}
    });
    let lame = Server::start(|_, stream| {
        let body = r#"{"error":"etcdserver: no leader","message":"etcdserver: no leader","code":14}"#;
        let length = body.len();
        let _ = write!(stream, "HTTP/1.1 503 No\r\nContent-Length: {length}\r\n\r\n{body}");
    });
    let good = Server::of_json(|_| r#"{"ID":"5","TTL":"3"}"#.to_owned());
    // What the others may take on a busy machine.
    let store = store_with(&[&silent, &lame, &good], Duration::from_secs(2));
    assert_eq!(store.begin(1), Ok(SharedLease { id: 5, lasts: Duration::from_secs(3) }));
    assert_eq!((silent.asked(), lame.asked()), (1, 1), "the member that answers is asked on");
    let alone = super::hostile_tests::store(&[&lame]);
    assert!(fault(alone.begin(1)).contains("no leader"));
}

#[test]
fn watches_are_followed_and_say_when_something_is_missed() {
    let watched = |lines: &'static [&'static str], after| {
        let server = Server::of_json(move |_| lines.concat());
        let mut watch = store(&[&server]).watch(after)?;
        let mut all = Vec::new();
        loop {
            match watch.next(Duration::from_secs(60)) {
                Ok((told, up_to)) => all.push((told.len(), told.iter().filter(|t| is_put(t)).count(), up_to)),
                Err(ShareFault::Unavailable(_)) => return Ok(all),
                Err(other) => return Err(other),
            }
        }
    };
    fn is_put(told: &Told) -> bool {
        matches!(told, Told::Put(_))
    }
    const CREATED: &str = "{\"result\":{\"header\":{\"revision\":\"7\"},\"created\":true}}\n";
    // /ironorb/names/shared/n NUL 1 NUL 2 NUL r, with `[]`; the same gone; a key of something else.
    const EVENTS: &str = "{\"result\":{\"events\":[\
        {\"kv\":{\"key\":\"L2lyb25vcmIvbmFtZXMvc2hhcmVkL24AMQAyAHI=\",\"value\":\"W10=\",\"mod_revision\":\"9\"}},\
        {\"type\":\"DELETE\",\"kv\":{\"key\":\"L2lyb25vcmIvbmFtZXMvc2hhcmVkL24AMQAyAHI=\",\"mod_revision\":\"10\"}},\
        {\"kv\":{\"key\":\"eA==\",\"value\":\"W10=\",\"mod_revision\":\"10\"}}]}}\n";
    assert_eq!(watched(&[CREATED, EVENTS], 7), Ok(vec![(2, 1, 9)]), "the last revision may not be all there");
    assert_eq!(watched(&[CREATED], 8), Err(ShareFault::Forgotten), "the store was set back");
    const OTHER: &str =
        "{\"result\":{\"header\":{\"cluster_id\":\"3\",\"revision\":\"7\"},\"created\":true}}\n";
    assert_eq!(watched(&[OTHER], 7), Err(ShareFault::Forgotten), "another store");
    const COMPACTED: &str = "{\"result\":{\"canceled\":true,\"compact_revision\":\"9\"}}\n";
    assert_eq!(watched(&[CREATED, COMPACTED], 7), Err(ShareFault::Forgotten));
    const WRONG: &str = "{\"result\":{\"events\":7}}\n";
    assert_eq!(watched(&[CREATED, WRONG], 7), Ok(vec![]));
}
