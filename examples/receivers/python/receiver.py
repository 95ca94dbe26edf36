import base64
import hashlib
import hmac
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_SECONDS = 300
MAX_BODY_BYTES = 256 * 1024


def verify(secret: str, headers, body: bytes) -> bool:
    """Return whether one of the signatures matches the body. `secret` is the signing secret, `whsec_…`."""
    event_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not event_id or not timestamp.isdigit():
        return False
    if abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{event_id}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    signatures = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(each.encode(), expected.encode()) for each in signatures)


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        if length > MAX_BODY_BYTES:
            return self.answer(413)
        # Verify the raw bytes before you parse the body.
        body = self.rfile.read(length)
        if not verify(SIGNING_SECRET, self.headers, body):
            return self.answer(401)
        # Store the headers webhook-id and webhook-replay here to detect duplicates.
        self.answer(204)

    def answer(self, status: int):
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format, *args):
        pass


if __name__ == "__main__":
    SIGNING_SECRET = os.environ["SIGNING_SECRET"]
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9900"))), Receiver)
    print("listening", flush=True)
    server.serve_forever()
