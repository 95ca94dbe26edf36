"""A producer and a receiver of CloudEvents with the official SDK for Python. The tests drive it over HTTP."""

import base64
import http.client
import json
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from cloudevents.core.bindings.http import HTTPMessage, from_http_event, to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

readings: dict[str, dict] = {}


def time_of(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def event_of(described: dict) -> CloudEvent:
    attributes = dict(described["attributes"], specversion="1.0")
    if "time" in attributes:
        attributes["time"] = time_of(attributes["time"])
    for name, extension in described.get("extensions", {}).items():
        value = extension["value"]
        attributes[name] = time_of(value) if extension["type"] == "timestamp" else value
    data = described.get("data")
    if data is None:
        return CloudEvent(attributes, None)
    if "base64" in data:
        return CloudEvent(attributes, base64.b64decode(data["base64"]))
    return CloudEvent(attributes, data["text"] if "text" in data else data["json"])


def message_of(order: dict) -> HTTPMessage:
    event = event_of(order["event"])
    if order["mode"] == "binary":
        return to_binary_event(event)
    message = to_structured_event(event)
    if order["mode"] == "structured":
        return message
    # The SDK makes no batches: a batch is a JSON array of structured events.
    batch = b"[" + message.body + b"," + message.body + b"]"
    return HTTPMessage({"content-type": "application/cloudevents-batch+json"}, batch)


def produce(order: dict) -> dict:
    try:
        message = message_of(order)
    except Exception as error:
        return {"unsendable": str(error)}
    url = urlsplit(order["url"])
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    try:
        connection.request("POST", url.path, message.body, {**message.headers, **order["headers"]})
        response = connection.getresponse()
        return {"status": response.status, "body": response.read().decode()}
    finally:
        connection.close()


def text_of(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, datetime) else str(value)


def read(headers: dict[str, str], body: bytes) -> dict:
    try:
        event = from_http_event(HTTPMessage(headers, body))
    except Exception as error:
        return {"error": repr(error)}
    attributes = {name: text_of(value) for name, value in event.get_attributes().items() if value is not None}
    data = event.get_data()
    if data is None:
        return {"attributes": attributes, "data": None}
    if isinstance(data, (bytes, bytearray)):
        return {"attributes": attributes, "data": {"base64": base64.b64encode(data).decode()}}
    return {"attributes": attributes, "data": {"text": data} if isinstance(data, str) else {"json": data}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        if not self.path.startswith("/receive"):
            return self.answer(200, produce(json.loads(body)))
        readings[self.headers["webhook-id"]] = read(dict(self.headers.items()), body)
        return self.answer(204)

    def do_GET(self) -> None:
        found = readings.get(parse_qs(urlsplit(self.path).query)["id"][0])
        self.answer(404) if found is None else self.answer(200, found)

    def answer(self, status: int, document: object = None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"port {server.server_port}", flush=True)
server.serve_forever()
