import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const TOLERANCE_SECONDS = 300;
const MAX_BODY_BYTES = 256 * 1024;

/** Returns whether one of the signatures matches the body. `secret` is the signing secret, `whsec_…`. */
export function verify(secret, headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  if (!id || !/^\d+$/.test(timestamp ?? '') || !signatures) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  return signatures.split(' ').some(each => {
    const [version, value = ''] = each.split(',');
    const actual = Buffer.from(value, 'base64');
    return version === 'v1' && actual.length === expected.length && timingSafeEqual(actual, expected);
  });
}

async function receive(request, response) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MAX_BODY_BYTES) return response.writeHead(413).end();
    parts.push(part);
  }
  // Verify the raw bytes before you parse the body.
  if (!verify(SIGNING_SECRET, request.headers, Buffer.concat(parts))) return response.writeHead(401).end();
  // Store the headers webhook-id and webhook-replay here to detect duplicates.
  console.log(`verified ${request.headers['webhook-id']}`);
  response.writeHead(204).end();
}

const { SIGNING_SECRET, PORT = '9900', HOST = '127.0.0.1' } = process.env;
if (!SIGNING_SECRET) throw new Error('set SIGNING_SECRET');
// The promise is rejected if the client closes the connection too early.
const server = createServer((request, response) => receive(request, response).catch(() => response.destroy()));
server.listen(Number(PORT), HOST, () => console.log('listening'));
