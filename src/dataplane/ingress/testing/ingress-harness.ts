import { request } from 'undici';
import { expect } from 'vitest';
import { createClientAddress } from '../../../http/client-address.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { createRegistry } from '../../../telemetry/metrics.ts';
import type { IngressLimits } from '../limits.ts';
import type { SandboxDesk } from '../sandbox/sandbox-route.ts';
import { createSandboxRoutes } from '../sandbox/sandbox-routes.ts';
import type { SenderRates } from '../sender-limits.ts';
import { createIngress } from '../server.ts';
import { createMemoryStore } from './memory-store.ts';

const PROBLEM = 'application/problem+json';

/** The fields that can be contained in a response (either a problem or a success). */
interface Answer {
  id?: string;
  code?: string;
  detail?: string;
}

/**
 * Starts an ingress that can be used for tests. This ingress has a separate port, a store in memory, and a clock that
 * is only moved by the test. With `rates`, requests are limited, and those with X-Forwarded-For come from that address.
 */
export async function startIngress(
  limits: Partial<IngressLimits> = {},
  sandbox?: SandboxDesk,
  rates?: Partial<SenderRates>,
) {
  const store = createMemoryStore();
  const registry = createRegistry();
  const clock = { nowMs: 1_000_000, wallSetBackMs: 0 };
  const logged: Record<string, unknown>[] = [];
  const log = createLogger({ level: 'info' }, { write: line => void logged.push(JSON.parse(line)) });
  const ingress = createIngress({
    store,
    memorySource: store.memorySource,
    registry,
    log,
    limits,
    nowMs: () => clock.nowMs - clock.wallSetBackMs,
    monotonicMs: () => clock.nowMs,
    wallMs: () => clock.nowMs - clock.wallSetBackMs,
    ...(rates === undefined
      ? {}
      : {
          rates: { perAddress: 0, perKey: 0, perWorkspace: 0, ...rates },
          addressOf: createClientAddress(['127.0.0.1']),
        }),
    ...(sandbox === undefined ? {} : { addRoutes: createSandboxRoutes(sandbox) }),
  });
  const port = await ingress.listen(0, '127.0.0.1');

  async function send(options: {
    path?: string;
    method?: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH' | 'HEAD' | 'OPTIONS' | 'TRACE';
    headers?: Record<string, string>;
    body?: string | Buffer;
  }) {
    const answer = await request(`http://127.0.0.1:${port}${options.path ?? `/events/${store.tenant}/orders`}`, {
      method: options.method ?? 'POST',
      headers: { 'x-api-key': store.key, ...options.headers },
      body: options.body ?? null,
    });
    const text = await answer.body.text();
    const document: Answer = text === '' ? {} : JSON.parse(text);
    // If a request is refused, the response must be a problem document which does not contain the key.
    const refused = answer.statusCode >= 400 && text !== '';
    expect({ type: refused ? answer.headers['content-type'] : PROBLEM, leaks: text.includes(store.key) }).toEqual({
      type: PROBLEM,
      leaks: false,
    });
    expect(refused ? document : {}).toMatchObject(
      refused ? { status: answer.statusCode, type: `/problems/${document.code}` } : {},
    );
    return { status: answer.statusCode, headers: answer.headers, document };
  }

  return { store, registry, clock, ingress, port, send, logged };
}
