import { isUtf8 } from 'node:buffer';
import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';

/** A request to an endpoint, with its response. */
export type Received = {
  /** The event id in `webhook-id`. */
  readonly id: string;
  readonly type: string;
  readonly groupKey: string;
  readonly body: Buffer;
  /**
   * `valid`, or the reason why the signature is not valid. The public package `standardwebhooks` verifies bodies that
   * are text. It cannot verify any others, because it decodes the body.
   */
  readonly signature: 'valid' | { readonly refusal: string };
  /** The response status. */
  readonly status: number;
  /** The time at which the last byte was received, using performance.now(). */
  readonly atMs: number;
};

/** The maximum waiting time of `GET /received?id=`. */
const LOOK_FOR_MS = 10_000;

export type Receiver = {
  readonly port: number;
  /** Responds to the next `count` requests with 503. */
  readonly failNext: (count: number) => void;
  /** All requests so far, in order of arrival. */
  readonly received: () => readonly Received[];
  /**
   * Waits for the first matching request, which may already have been received. @returns undefined if there is none
   * within `withinMs`
   */
  readonly waitFor: (fits: (received: Received) => boolean, withinMs: number) => Promise<Received | undefined>;
  readonly stop: () => Promise<void>;
};

/** Stores received requests and waits for more. */
function createLog() {
  const all: Received[] = [];
  const watchers = new Set<(received: Received) => void>();
  return {
    all,
    add(received: Received): void {
      all.push(received);
      for (const watch of watchers) watch(received);
    },
    waitFor(fits: (received: Received) => boolean, withinMs: number): Promise<Received | undefined> {
      return new Promise(resolve => {
        const found = all.find(fits);
        if (found !== undefined) return resolve(found);
        const end = (received: Received | undefined): void => {
          clearTimeout(timer);
          watchers.delete(watch);
          resolve(received);
        };
        const watch = (received: Received): void => {
          if (fits(received)) end(received);
        };
        const timer = setTimeout(end, withinMs, undefined);
        watchers.add(watch);
      });
    },
  };
}

/** Verifies signatures and reads the secrets again if none of them matches. */
function createVerify(readSecrets: () => Promise<readonly string[]>) {
  let secrets: readonly string[] = [];
  return async (body: Buffer, headers: Record<string, string>): Promise<Received['signature']> => {
    const verdict = judgeSignature(secrets, body, headers);
    if (verdict === 'valid') return verdict;
    // The secrets have not been read yet or have been rotated.
    secrets = await readSecrets();
    return judgeSignature(secrets, body, headers);
  };
}

async function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  port: number,
): Promise<Pick<Receiver, 'port' | 'stop'>> {
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (!response.headersSent) response.statusCode = 500;
      response.end(`${String(error)}\n`);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * Starts a partner's endpoint. `POST` to any path is a delivery, which is verified and results in 200 (401 if the
 * signature is invalid). `POST /fail?next=<n>` makes the next n deliveries fail. `GET /received` lists all requests,
 * with one JSON line per request. With `?id=<webhook-id>`, it only returns this event and waits (up to 10 s) until the
 * response to the event was 200.
 * @param options.port 0 picks a free port
 * @param options.readSecrets returns the valid `whsec_` secrets. It is called again if none of them verifies the
 * signature
 */
export async function startReceiver(options: {
  port: number;
  readSecrets: () => Promise<readonly string[]>;
  onReceived?: (received: Received) => void;
}): Promise<Receiver> {
  const log = createLog();
  const verify = createVerify(options.readSecrets);
  let failing = 0;

  async function take(request: IncomingMessage): Promise<number> {
    const body = await buffer(request);
    const atMs = performance.now();
    const header = (name: string): string => String(request.headers[name] ?? '');
    const signed = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
    const signature = await verify(body, Object.fromEntries(signed.map(name => [name, header(name)])));
    const status = signature !== 'valid' ? 401 : failing > 0 ? 503 : 200;
    if (status === 503) failing--;
    const id = header('webhook-id');
    const type = header('x-sluice-event-type');
    const groupKey = Buffer.from(header('x-sluice-group-key'), 'latin1').toString('utf8');
    const received: Received = { id, type, groupKey, body, signature, status, atMs };
    log.add(received);
    options.onReceived?.(received);
    return status;
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://receiver');
    if (request.method === 'GET' && pathname === '/received') {
      const id = searchParams.get('id');
      if (id !== null) await log.waitFor(received => received.id === id && received.status === 200, LOOK_FOR_MS);
      response.setHeader('content-type', 'application/x-ndjson');
      response.end(
        log.all
          .filter(received => id === null || received.id === id)
          .map(summary)
          .join(''),
      );
    } else if (request.method !== 'POST') {
      response.statusCode = 404;
      response.end('there are GET /received and POST /fail?next=<n>; any other POST is a delivery\n');
    } else if (pathname === '/fail') {
      failing = Number(searchParams.get('next')) || 0;
      response.end(`the next ${failing} deliveries are answered with 503\n`);
    } else {
      response.statusCode = await take(request);
      response.end();
    }
  }

  const server = await listen(handle, options.port);
  return {
    ...server,
    failNext: count => {
      failing = count;
    },
    received: () => log.all,
    waitFor: (fits, withinMs) => log.waitFor(fits, withinMs),
  };
}

function judgeSignature(
  secrets: readonly string[],
  body: Buffer,
  headers: Record<string, string>,
): Received['signature'] {
  let refusal = 'no signing secret could be read';
  for (const secret of secrets) {
    try {
      if (isUtf8(body)) new Webhook(secret).verify(body, headers, { jsonParse: false });
      else verifyBytes(secret, body, headers);
      return 'valid';
    } catch (error) {
      refusal = error instanceof Error ? error.message : String(error);
    }
  }
  return { refusal };
}

function verifyBytes(secret: string, body: Buffer, headers: Record<string, string>): void {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`;
  const expected = `v1,${createHmac('sha256', key).update(signed).update(body).digest('base64')}`;
  if (!headers['webhook-signature']?.split(' ').includes(expected)) throw new Error('No matching signature found');
}

function summary({ id, type, groupKey, signature, status, body }: Received): string {
  return `${JSON.stringify({ id, type, groupKey, signature, status, body: body.toString('utf8') })}\n`;
}
