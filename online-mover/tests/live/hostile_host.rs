//! A host with invalid answers delays its own steps and no others.

use crate::place::{Place, settings, until};
use broker::{MoveReason, MoveState};
use online_mover::agent::http::{HttpAgent, Protection};
use online_mover::{Mover, MoverSettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The answers of the hostile host, in order; the last one repeats forever.
#[derive(Clone, Copy, Debug)]
enum Said {
    /// An answer with this body.
    Body(&'static [u8]),
    /// Bytes that are not HTTP.
    Raw(&'static [u8]),
    /// A body of this many bytes.
    Huge(usize),
    /// This many brackets in an unknown field.
    Deep(usize),
    /// A byte every few milliseconds, without end.
    Trickle,
    /// A chunked body without end, as fast as the client reads.
    Endless,
    /// Nothing.
    Silence,
}

const ALL: [Said; 14] = [
    Said::Raw(b"\0\0\0\0"),
    Said::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616\r\n\r\n"),
    Said::Raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffffff\r\n"),
    Said::Body(b"{\"state\": \"refused\", \"why\": \"\xff\xfe\"}"),
    Said::Body(b"{\"state\": \"re\\u0000fused\"}"),
    Said::Body(b"{\"state\": \"refused\", \"why\": \"\\ud800\"}"),
    Said::Body(b"{\"state\": \"under_way\", \"again_after_seconds\": -1}"),
    Said::Body(b"{\"state\": \"under_way\", \"again_after_seconds\": 4294967295}"),
    Said::Body(b"{\"state\": \"outdated\", \"epoch\": 9223372036854775807}"),
    Said::Huge(8 << 20),
    Said::Deep(1 << 15),
    Said::Trickle,
    Said::Endless,
    Said::Silence,
];

/// A refusal with a zero character in the reason.
const LAST: Said =
    Said::Body(b"{\"state\": \"refused\", \"why\": \"no\\u0000power \\u202e\xf0\x9f\x94\xa5\"}");

async fn say(stream: &mut TcpStream, said: Said) -> std::io::Result<()> {
    let body = |length: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
    match said {
        Said::Body(bytes) => {
            stream.write_all(body(bytes.len()).as_bytes()).await?;
            stream.write_all(bytes).await
        }
        Said::Raw(bytes) => stream.write_all(bytes).await,
        Said::Huge(length) => {
            stream.write_all(body(length).as_bytes()).await?;
            stream.write_all(&vec![b' '; length]).await
        }
        Said::Deep(depth) => {
            let text = format!("{{\"state\": \"done\", \"x\": {}", "[".repeat(depth));
            stream.write_all(body(text.len()).as_bytes()).await?;
            stream.write_all(text.as_bytes()).await
        }
        Said::Trickle => {
            stream.write_all(body(1 << 30).as_bytes()).await?;
            loop {
                stream.write_all(b" ").await?;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        Said::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            loop {
                stream.write_all(b"400\r\n").await?;
                stream.write_all(&[b' '; 0x400]).await?;
                stream.write_all(b"\r\n").await?;
            }
        }
        Said::Silence => std::future::pending().await,
    }
}

/// Automation whose host `s00` is hostile; all others do what they are asked.
async fn serve(listener: TcpListener, turn: Arc<AtomicUsize>) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let turn = Arc::clone(&turn);
        tokio::spawn(async move {
            let mut asked = Vec::new();
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                asked.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&asked).into_owned();
                // The order ends with its epoch, behind which nothing comes.
                let Some((_, order)) = text.split_once("\r\n\r\n") else { continue };
                if !order.ends_with('}') {
                    continue;
                }
                asked.clear();
                let said = if order.contains("\"server\":\"s00\"") {
                    let turn = turn.fetch_add(1, Ordering::SeqCst);
                    ALL.get(turn).copied().unwrap_or(LAST)
                } else {
                    Said::Body(b"{\"state\": \"done\"}")
                };
                if say(&mut stream, said).await.is_err() {
                    return;
                }
            }
        });
    }
}

#[tokio::test]
async fn hostile_host_delays_no_other_move() {
    let place = Place::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/steps", listener.local_addr().expect("an address"));
    let turn = Arc::new(AtomicUsize::new(0));
    let server = tokio::spawn(serve(listener, Arc::clone(&turn)));
    let unsigned = Protection { unsigned: true, ..Protection::default() };
    let agent = HttpAgent::new(&url, unsigned, Duration::from_millis(400)).expect("an agent");
    let settings = MoverSettings { pause_max: Duration::from_millis(50), ..settings() };
    let mover = Mover::new(place.broker.clone(), agent, settings, "mover".to_owned());
    let mut wanted = place.publish(&[(0, Some("b")), (1, Some("b"))]).await;
    wanted.insert("s00".to_owned(), Some("a".to_owned()));
    let (mut epoch, mut others) = (None, 0_usize);
    // Meanwhile others are given owners again and again, and each is bound.
    let busy = async {
        loop {
            crate::place::poll(async || place.owners().await["s01"] == wanted["s01"]).await;
            others += 1;
            epoch = epoch.or(Some(place.broker.mover_status().await.expect("asked").epoch));
            let ended = place.broker.moves_ended().await.expect("counted");
            if ended.iter().any(|of| of.state == MoveState::Failed) {
                return;
            }
            let to = ["a", "b"][others % 2];
            wanted.insert("s01".to_owned(), Some(to.to_owned()));
            place.publish(&[(1, Some(to))]).await;
        }
    };
    let run = async {
        tokio::select! {
            never = mover.run() => never,
            () = busy => {}
        }
        std::future::pending::<()>().await;
    };
    let ended = async || {
        let ended = place.broker.moves_ended().await.expect("counted");
        ended
            .iter()
            .any(|of| of.state == MoveState::Failed && of.reason == Some(MoveReason::HostRefused))
    };
    until(run, ended).await;
    let said = turn.load(Ordering::SeqCst);
    let status = place.broker.mover_status().await.expect("asked");
    println!("{said} answers of the hostile host; meanwhile {others} moves of another were bound");
    assert!(said > ALL.len(), "all of them were tried");
    assert!(others >= 3, "others are bound meanwhile: {others}");
    assert_eq!(epoch, Some(status.epoch), "the same mover acts");
    let moves = place.broker.moves_page(&Default::default(), 100).await.expect("listed");
    let failed = moves.iter().find(|of| &*of.server == "s00").expect("its move");
    assert_eq!(failed.detail.as_deref(), Some("no\u{FFFD}power \u{FFFD}\u{1F525}"));
    server.abort();
}
