//! Bytes from a server, read by the real client over the loopback interface.

use std::cell::Cell;
use std::io;

use huntsman::{Downloader, HttpDownloader, Request, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// Number of addresses, used in turn: a single port allows only a limited number of connections a minute.
const SERVERS: u8 = 64;
const MOST: u64 = 1 << 20;

struct Wire {
    runtime: Runtime,
    client: HttpDownloader,
    servers: Vec<TcpListener>,
    turn: Cell<usize>,
}

impl Wire {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut settings = Settings::default();
        settings.allow_private_addresses = true;
        settings.download_maxsize = MOST;
        settings.download_binary = true;
        // The server ends every response, so these timeouts apply only to a response that would never end.
        settings.first_byte_timeout = 5.0;
        settings.read_idle_timeout = 5.0;
        settings.download_timeout = 10.0;
        let client = HttpDownloader::new(&settings).expect("the settings are right");
        let listen = |n| async move { TcpListener::bind((std::net::Ipv4Addr::new(127, 0, 0, n), 0)).await };
        let servers = runtime.block_on(async {
            let mut servers = Vec::new();
            for n in 1..=SERVERS {
                // Some systems have one loopback address only.
                servers.extend(listen(n).await.ok());
            }
            servers
        });
        Self { runtime, client, servers, turn: Cell::new(0) }
    }

    fn next_server(&self) -> &TcpListener {
        let turn = self.turn.get();
        self.turn.set((turn + 1) % self.servers.len());
        &self.servers[turn]
    }
}

thread_local! {
    static WIRE: Wire = Wire::new();
}

/// Sends the response to one client, and closes the connection.
async fn serve(server: &TcpListener, answer: &[u8]) -> io::Result<()> {
    let (mut stream, _) = server.accept().await?;
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") && stream.read_buf(&mut asked).await? > 0 {}
    stream.write_all(answer).await?;
    stream.shutdown().await?;
    // Waits until the client has read it: closing with unread bytes would reset the connection.
    while stream.read_buf(&mut asked).await? > 0 {
        asked.clear();
    }
    Ok(())
}

/// A raw response: the client must return a response within the limits that has its declared length, or an error.
pub(crate) fn answers(data: &[u8]) {
    WIRE.with(|wire| {
        let server = wire.next_server();
        let address = server.local_addr().expect("it listens");
        let request = Request::get(Url::parse(&format!("http://{address}/")).expect("a URL"));
        let result = wire.runtime.block_on(async {
            let serving = async {
                loop {
                    // A client may leave in the middle.
                    let _ = serve(server, data).await;
                }
            };
            tokio::select! {
                result = wire.client.fetch(&request) => result,
                () = serving => unreachable!("it serves for ever"),
            }
        });
        let Ok(response) = result else { return };
        assert!((200..600).contains(&response.status.as_u16()), "{}", response.status);
        let body = response.decoded.as_ref().unwrap_or(&response.body);
        assert!(body.len() as u64 <= MOST && response.wire_bytes <= data.len() as u64);
        let length = response.header("content-length").and_then(|length| length.trim().parse::<u64>().ok());
        let has_body = !matches!(response.status.as_u16(), 204 | 304);
        if let (Some(length), true) = (length, has_body)
            && response.header("transfer-encoding").is_none()
            && response.flags.is_empty()
        {
            assert_eq!(response.wire_bytes, length, "a whole body is as long as it says");
        }
    });
}
