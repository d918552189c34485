//! Downloads from a small server in the test itself.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);
const ELF: &[u8] = b"\x7fELF and more";

/// A server that passes each request's path and connection to a function.
struct Server {
    url: String,
    requests: Arc<AtomicUsize>,
}

impl Server {
    fn new(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (counter, answer) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, counter, answer) = (stream.unwrap(), Arc::clone(&counter), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                    let head: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                    counter.fetch_add(1, Ordering::SeqCst);
                    let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
                    answer(path, &mut stream);
                });
            }
        });
        Self { url, requests }
    }

    /// Creates a server that always replies with these bytes.
    fn replying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |_, stream| drop(stream.write_all(&answer)))
    }

    fn count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Returns a reply whose stated length may differ from that of its body.
fn answer(status: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn found() -> Vec<u8> {
    answer("200 OK", ELF.len(), ELF)
}

fn missing() -> Vec<u8> {
    answer("404 Not Found", 0, b"")
}

fn client(folder: &TestFolder, servers: &str, limit: Duration) -> Debuginfod {
    Debuginfod::new(servers, folder.path().into(), limit, 1 << 20).unwrap()
}

/// Asserts that nothing remains of a failed download.
fn assert_empty(folder: &TestFolder) {
    let left = std::fs::read_dir(folder.path().join("abcdef")).map_or(0, Iterator::count);
    assert_eq!(left, 0);
}

#[test]
fn a_file_is_fetched_once_and_kept() {
    let folder = TestFolder::new();
    let server = Server::new(|path, stream| {
        let reply = if path == "/prefix/buildid/abcdef/debuginfo" { found() } else { missing() };
        stream.write_all(&reply).unwrap();
    });
    let client = client(&folder, &format!("{}/prefix/", server.url), LONG);
    let path = client.fetch_debug_info(&id()).unwrap();
    assert_eq!(path, folder.path().join("abcdef/debuginfo"));
    assert_eq!(std::fs::read(&path).unwrap(), ELF);
    assert_eq!((client.fetch_debug_info(&id()), server.count()), (Ok(path), 1));
}

#[test]
fn a_missing_file_is_remembered_too() {
    let folder = TestFolder::new();
    let server = Server::replying(missing());
    let client = client(&folder, &format!("{0} {0}", server.url), LONG);
    assert_eq!(client.fetch_debug_info(&id()), Err(DebuginfodError::NotFound));
    assert_eq!(client.fetch_debug_info(&id()), Err(DebuginfodError::NotFound));
    assert_eq!(server.count(), 2);
    assert_eq!(std::fs::read(folder.path().join("abcdef/debuginfo")).unwrap(), b"");
}

#[test]
fn the_next_server_is_queried_after_one_that_fails_or_hangs() {
    let folder = TestFolder::new();
    let hung = Server::new(|_, _| std::thread::sleep(LONG));
    let (broken, good) = (Server::replying(answer("500 Oops", 0, b"")), Server::replying(found()));
    let servers = format!("http://127.0.0.1:1 {} {} {}", broken.url, hung.url, good.url);
    assert!(client(&folder, &servers, Duration::from_secs(8)).fetch_debug_info(&id()).is_ok());
}

#[test]
fn a_failing_server_does_not_mean_that_the_file_is_missing() {
    let folder = TestFolder::new();
    let servers = [Server::replying(answer("503 Busy", 0, b"")), Server::replying(missing())];
    let client = client(&folder, &format!("{} {}", servers[0].url, servers[1].url), LONG);
    assert_eq!(client.fetch_debug_info(&id()), Err(DebuginfodError::Status(503)));
    assert_empty(&folder);
}

#[test]
fn a_slow_server_is_abandoned_at_the_deadline() {
    let silent = Server::new(|_, _| std::thread::sleep(LONG));
    let dripping = Server::new(|_, stream| {
        let _ = stream.write_all(&answer("200 OK", 1000, ELF));
        while stream.write_all(b".").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    for server in [silent, dripping] {
        let folder = TestFolder::new();
        let started = Instant::now();
        let error = client(&folder, &server.url, SHORT).fetch_debug_info(&id()).unwrap_err();
        assert!(matches!(error, DebuginfodError::Late(_)), "{error}");
        assert!(started.elapsed() < LONG / 4);
        assert_empty(&folder);
    }
}

#[test]
fn a_file_of_wrong_length_or_kind_is_not_kept() {
    let stated = [b"HTTP/1.1 200 OK\r\nX-DEBUGINFOD-SIZE: 99\r\nConnection: close\r\n\r\n", ELF].concat();
    let page = b"<html>log in first</html>";
    let cases = [
        (answer("200 OK", 1000, ELF), DebuginfodError::WrongLength),
        (stated, DebuginfodError::WrongLength),
        (answer("200 OK", page.len(), page), DebuginfodError::NotElf),
        (answer("200 OK", 0, b""), DebuginfodError::NotElf),
        (answer("200 OK", 2 << 20, ELF), DebuginfodError::TooLarge(1 << 20)),
        (answer("406 Not Acceptable", 0, b""), DebuginfodError::TooLarge(1 << 20)),
        (
            [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec(), vec![0; 2 << 20]].concat(),
            DebuginfodError::TooLarge(1 << 20),
        ),
    ];
    for (reply, expected) in cases {
        let folder = TestFolder::new();
        let server = Server::replying(reply);
        assert_eq!(client(&folder, &server.url, LONG).fetch_debug_info(&id()), Err(expected));
        assert_empty(&folder);
    }
    for garbage in [b"".as_slice(), b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\n"] {
        let folder = TestFolder::new();
        let server = Server::replying(garbage);
        assert!(client(&folder, &server.url, LONG).fetch_debug_info(&id()).is_err());
        assert_empty(&folder);
    }
}

#[test]
fn redirects_are_followed_up_to_a_limit() {
    let folder = TestFolder::new();
    let good = Server::replying(found());
    let redirect = |to: &str| format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    let server = Server::replying(redirect(&format!("{}/elsewhere", good.url)));
    assert!(client(&folder, &server.url, LONG).fetch_debug_info(&id()).is_ok());
    let folder = TestFolder::new();
    let server = Server::replying(redirect("/again"));
    let error = client(&folder, &server.url, LONG).fetch_debug_info(&id()).unwrap_err();
    assert!(matches!(error, DebuginfodError::Connection(_)), "{error}");
}

#[test]
fn concurrent_requests_for_a_file_fetch_it_once() {
    let folder = TestFolder::new();
    let server = Server::new(|_, stream| {
        std::thread::sleep(SHORT);
        stream.write_all(&found()).unwrap();
    });
    let client = client(&folder, &server.url, LONG);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert!(client.fetch_debug_info(&id()).is_ok()));
        }
    });
    assert_eq!(server.count(), 1);
}

/// A running `openssl s_server`, which is ended when this is dropped.
struct OpensslServer(Child);

impl Drop for OpensslServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server that replies with the file at the requested path: `-WWW` with its bytes, `-HTTP` with a file
/// that is a complete reply. `None` if openssl is not installed.
fn openssl_server(folder: &TestFolder, mode: &str) -> Option<(OpensslServer, String)> {
    let certify = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out certificate -subj /CN=localhost \
        -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE 2>/dev/null";
    let is_certified = Command::new("sh").args(["-c", certify]).current_dir(folder.path()).status();
    if !is_certified.is_ok_and(|status| status.success()) {
        println!("skipped: openssl is not installed");
        return None;
    }
    let serve = ["s_server", "-accept", "0", "-key", "key", "-cert", "certificate", mode];
    let mut command = Command::new("openssl");
    command.args(serve).current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = OpensslServer(command.spawn().unwrap());
    let lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let accepting = lines.map_while(Result::ok).find(|line| line.starts_with("ACCEPT")).unwrap();
    let url = format!("https://127.0.0.1:{}", accepting.rsplit_once(':').unwrap().1);
    Some((server, url))
}

#[test]
fn https_works_with_trusted_servers() {
    let folder = TestFolder::new();
    let Some((_server, url)) = openssl_server(&folder, "-WWW") else { return };
    std::fs::create_dir_all(folder.path().join("buildid/abcdef")).unwrap();
    folder.file("buildid/abcdef/debuginfo", ELF);
    let cache = TestFolder::new();
    let mut client = client(&cache, &url, LONG);
    let error = client.fetch_debug_info(&id()).unwrap_err();
    assert!(matches!(error, DebuginfodError::Connection(_)), "{error}");
    client.client = Client::trusting(folder.path().join("certificate"));
    assert_eq!(std::fs::read(client.fetch_debug_info(&id()).unwrap()).unwrap(), ELF);
}

#[test]
fn redirects_from_an_encrypted_to_an_unencrypted_server_are_refused() {
    let folder = TestFolder::new();
    let Some((_server, url)) = openssl_server(&folder, "-HTTP") else { return };
    let plain = Server::replying(found());
    std::fs::create_dir_all(folder.path().join("buildid/abcdef")).unwrap();
    let redirect = format!("HTTP/1.0 302 Found\r\nLocation: {}/plain\r\nContent-Length: 0\r\n\r\n", plain.url);
    folder.file("buildid/abcdef/debuginfo", redirect.as_bytes());
    let cache = TestFolder::new();
    let mut client = client(&cache, &url, LONG);
    client.client = Client::trusting(folder.path().join("certificate"));
    let error = client.fetch_debug_info(&id()).unwrap_err();
    assert!(matches!(error, DebuginfodError::Connection(_)), "{error}");
    assert_eq!(plain.count(), 0);
    assert_empty(&cache);
}
