import { Agent, request } from 'node:http';
import type { IdPool } from './id-pool.ts';
import type { Plan } from './requests.ts';

/** A request as it was sent. */
export interface Sent {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string | Buffer | undefined;
  /** The value of the body, or undefined if it intentionally isn't JSON, or if there is no body. */
  readonly json: unknown;
}

export interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly tookMs: number;
}

/** The tokens of the callers, and some invalid tokens. */
export interface Tokens {
  readonly good: readonly string[];
  readonly expired: string;
}

function authorizationOf({ token, caller }: Plan, tokens: Tokens): string | readonly string[] | undefined {
  const good = `Bearer ${tokens.good[caller % tokens.good.length]}`;
  if (token === 'good') return good;
  if (token === 'none') return undefined;
  if (token === 'expired') return `Bearer ${tokens.expired}`;
  if (token === 'basic') return 'Basic YWRhOmFkYQ==';
  return token === 'twice' ? [good, good] : 'Bearer e30.e30.x';
}

/** Replaces id references with existing ids, and writes the request in the format of HTTP. */
export function renderRequest(plan: Plan, ids: IdPool, tokens: Tokens): Sent {
  const path = ids.resolve(plan.path) as Record<string, unknown>;
  const query = ids.resolve(plan.query) as Record<string, unknown>;
  const segments = plan.template.replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
    plan.rawSegment?.name === name ? plan.rawSegment.text : encodeURIComponent(String(path[name])),
  );
  const pairs = Object.entries(query).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`,
  );
  const search = [...pairs, ...(plan.rawQuery === undefined ? [] : [plan.rawQuery])].join('&');
  const json = plan.rawBody === undefined ? ids.resolve(plan.json) : undefined;
  const body = plan.rawBody ?? (json === undefined ? undefined : JSON.stringify(json));
  const authorization = authorizationOf(plan, tokens);
  const contentType = plan.contentType ?? (body === undefined ? undefined : 'application/json');
  return {
    method: plan.method,
    target: `${segments}${search === '' ? '' : `?${search}`}`,
    headers: {
      ...(authorization === undefined ? {} : { authorization }),
      ...(contentType === undefined ? {} : { 'content-type': contentType }),
      ...(body === undefined ? {} : { 'content-length': `${Buffer.byteLength(body)}` }),
      ...(plan.header === undefined ? {} : { [plan.header[0]]: plan.header[1] }),
    },
    body,
    json,
  };
}

/** The maximum time to wait for a response. The longest call is a long poll of 30 s. */
const PATIENCE_MS = 45_000;

export interface Exchanger {
  /** Resolves with status 0 if the connection was closed without a response. */
  readonly send: (sent: Sent) => Promise<Received>;
  readonly close: () => void;
}

export function createExchanger(baseUrl: string, connections: number): Exchanger {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const { hostname, port } = new URL(baseUrl);

  function attempt(sent: Sent): Promise<Received & { readonly reused: boolean }> {
    const startedMs = performance.now();
    return new Promise(resolve => {
      const headers = { ...sent.headers } as Record<string, string | string[]>;
      const outgoing = request({ agent, hostname, port, method: sent.method, path: sent.target, headers });
      let received: Received = { status: 0, headers: {}, text: '', tookMs: 0 };
      const done = () => resolve({ ...received, tookMs: performance.now() - startedMs, reused: outgoing.reusedSocket });
      outgoing.setTimeout(PATIENCE_MS, () => outgoing.destroy());
      outgoing.on('response', incoming => {
        received = { ...received, status: incoming.statusCode ?? 0, headers: incoming.headers };
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('close', () => {
          received = { ...received, text: Buffer.concat(chunks).toString() };
          done();
        });
      });
      // The response received before the connection was closed is used.
      outgoing.on('error', () => received.status === 0 && done());
      outgoing.end(sent.body);
    });
  }

  return {
    async send(sent) {
      const first = await attempt(sent);
      // The server may close a persistent connection while a request is being sent, which does not count as a response.
      return first.status === 0 && first.reused ? attempt(sent) : first;
    },
    close: () => agent.destroy(),
  };
}
