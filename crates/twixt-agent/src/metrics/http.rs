//! A few lines of HTTP: enough for a scraper on this machine, and not more.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use twixt_capture::Stop;

/// Requests answered at the same time; more are closed unheard.
const CONNECTIONS_MAX: usize = 8;
/// Bytes of a request; a longer one is refused.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// A request must be whole, and the answer read, within this time.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How often to look whether all is over.
const LOOK: Duration = Duration::from_millis(50);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) status: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) text: String,
}

/// Answers `GET` requests with what `page` returns for their path (`None`: not found), until asked
/// to stop.
pub(crate) fn serve(
    listener: &TcpListener,
    stop: &Stop,
    page: &(impl Fn(&str) -> Option<Page> + Sync),
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let open = AtomicUsize::new(0);
    thread::scope(|scope| {
        while !stop.is_set() {
            match listener.accept() {
                Ok((stream, _)) if open.load(Ordering::Relaxed) < CONNECTIONS_MAX => {
                    open.fetch_add(1, Ordering::Relaxed);
                    let open = &open;
                    scope.spawn(move || {
                        // A client that does not read gets no answer.
                        let _ = answer(&stream, page);
                        open.fetch_sub(1, Ordering::Relaxed);
                    });
                }
                Ok(_) => {}
                Err(_) => thread::sleep(LOOK),
            }
        }
    });
    Ok(())
}

fn answer(mut stream: &TcpStream, page: &impl Fn(&str) -> Option<Page>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = read_request(stream)?;
    let page = respond(&request, page);
    let Page { status, content_type, text } = &page;
    let length = text.len();
    write!(
        stream,
        "HTTP/1.0 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    )?;
    stream.flush()
}

/// The first bytes of a request, up to the end of its head.
fn read_request(mut stream: &TcpStream) -> io::Result<Vec<u8>> {
    let start = Instant::now();
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = TIMEOUT.saturating_sub(start.elapsed());
        if left.is_zero() || request.len() > REQUEST_BYTES_MAX {
            return Ok(Vec::new());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => break,
            length => request.extend_from_slice(&piece[..length]),
        }
    }
    Ok(request)
}

fn respond(request: &[u8], page: &impl Fn(&str) -> Option<Page>) -> Page {
    let plain = |status| Page { status, content_type: "text/plain", text: format!("{status}\n") };
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut words = std::str::from_utf8(line).unwrap_or_default().split(' ');
    match (words.next(), words.next()) {
        (Some("GET" | "HEAD"), Some(path)) => {
            let path = path.split('?').next().unwrap_or_default();
            page(path).unwrap_or_else(|| plain("404 Not Found"))
        }
        (Some(method), Some(_)) if !method.is_empty() => plain("405 Method Not Allowed"),
        _ => plain("400 Bad Request"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(request: &[u8], status: &str) {
        let page = |path: &str| {
            let text = path.to_owned();
            (path == "/metrics").then_some(Page { status: "200 OK", content_type: "t", text })
        };
        assert_eq!(respond(request, &page).status, status);
    }

    #[test]
    fn requests_are_understood_or_refused() {
        check(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK");
        check(b"GET /metrics?debug HTTP/1.1\r\n\r\n", "200 OK");
        check(b"GET / HTTP/1.1\r\n\r\n", "404 Not Found");
        check(b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed");
        check(b"", "400 Bad Request");
        check(b"\xff\xff\r\n\r\n", "400 Bad Request");
        check(b"GET\r\n\r\n", "400 Bad Request");
    }

    #[test]
    fn it_answers_over_a_connection_and_stops() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Stop::default();
        thread::scope(|scope| {
            let text = "hello".to_owned();
            let page = move |_: &str| {
                Some(Page { status: "200 OK", content_type: "t", text: text.clone() })
            };
            let stop = &stop;
            scope.spawn(move || serve(&listener, stop, &page).unwrap());
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("hello"));
            stop.set();
        });
    }
}
