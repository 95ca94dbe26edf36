use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode};
use axum::Router;
use base64::prelude::{Engine, BASE64_STANDARD};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use tokio::net::TcpListener;

const TOLERANCE_SECONDS: u64 = 300;
const MAX_BODY_BYTES: usize = 256 * 1024;

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// Returns whether one of the signatures matches the body. `secret` is the signing secret, `whsec_…`.
fn verify(secret: &str, headers: &HeaderMap, body: &[u8]) -> Option<()> {
    let (id, timestamp) = (header(headers, "webhook-id"), header(headers, "webhook-timestamp"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    if id.is_empty() || now.abs_diff(timestamp.parse().ok()?) > TOLERANCE_SECONDS {
        return None;
    }
    let key = BASE64_STANDARD.decode(secret.trim_start_matches("whsec_")).ok()?;
    header(headers, "webhook-signature").split(' ').find_map(|each| {
        let signature = BASE64_STANDARD.decode(each.strip_prefix("v1,")?).ok()?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        // Compares the values in constant time.
        mac.verify_slice(&signature).ok()
    })
}

async fn receive(headers: HeaderMap, body: Bytes) -> StatusCode {
    let secret = env::var("SIGNING_SECRET").unwrap_or_default();
    // Verify the raw bytes before you parse the body.
    // Store the headers webhook-id and webhook-replay of verified requests to detect duplicates.
    match verify(&secret, &headers, &body) {
        Some(()) => StatusCode::NO_CONTENT,
        None => StatusCode::UNAUTHORIZED,
    }
}

#[tokio::main]
async fn main() {
    env::var("SIGNING_SECRET").expect("set SIGNING_SECRET");
    let port = env::var("PORT").unwrap_or("9900".into());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("the port is taken");
    println!("listening");
    // Responds to larger bodies with 413.
    let app = Router::new().fallback(receive).layer(DefaultBodyLimit::max(MAX_BODY_BYTES));
    axum::serve(listener, app).await.expect("the server has failed");
}
