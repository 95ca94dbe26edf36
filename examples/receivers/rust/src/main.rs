use std::env;
use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::prelude::{Engine, BASE64_STANDARD};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use tiny_http::{Request, Response, Server};

const TOLERANCE_SECONDS: u64 = 300;
const MAX_BODY_BYTES: u64 = 256 * 1024;

fn header<'a>(request: &'a Request, name: &'static str) -> &'a str {
    let found = request.headers().iter().find(|each| each.field.equiv(name));
    found.map_or("", |each| each.value.as_str())
}

/// Returns whether one of the signatures matches the body. `secret` is the signing secret, `whsec_…`.
fn verify(secret: &str, request: &Request, body: &[u8]) -> Option<()> {
    let (id, timestamp) = (header(request, "webhook-id"), header(request, "webhook-timestamp"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    if id.is_empty() || now.abs_diff(timestamp.parse().ok()?) > TOLERANCE_SECONDS {
        return None;
    }
    let key = BASE64_STANDARD.decode(secret.trim_start_matches("whsec_")).ok()?;
    header(request, "webhook-signature").split(' ').find_map(|each| {
        let signature = BASE64_STANDARD.decode(each.strip_prefix("v1,")?).ok()?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        // Compares the values in constant time.
        mac.verify_slice(&signature).ok()
    })
}

fn main() {
    let secret = env::var("SIGNING_SECRET").expect("set SIGNING_SECRET");
    let port = env::var("PORT").unwrap_or("9797".into());
    let server = Server::http(format!("127.0.0.1:{port}")).expect("the port is taken");
    println!("listening");
    for mut request in server.incoming_requests() {
        let mut body = Vec::new();
        let read = request.as_reader().take(MAX_BODY_BYTES + 1).read_to_end(&mut body);
        // Verify the raw bytes before you parse the body.
        // Store the webhook-id of verified requests to detect duplicate events.
        let status = match (read, body.len() as u64 > MAX_BODY_BYTES) {
            (Err(_), _) => 400,
            (_, true) => 413,
            _ if verify(&secret, &request, &body).is_some() => 204,
            _ => 401,
        };
        let _ = request.respond(Response::empty(status));
    }
}
