import { Agent, request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { collectAudit } from '../../../test/support/facade/collect-audit.ts';
import { createForgeries } from '../../../test/support/facade/forgeries.ts';
import { AUDIENCE, startIssuer, type TestIssuer } from '../../../test/support/facade/issuer.ts';
import { createChoices } from '../../../test/support/random.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import type { Route } from '../contract/route.ts';
import { createFacadeMetrics } from '../facade-metrics.ts';
import type { Facade } from '../objects/facade.ts';
import { ROUTES } from '../routes.ts';
import { createFacadeServer, type FacadeServer } from '../server.ts';

/** The number of forged tokens, which is higher when running `make test-api`. */
const TOKENS = Number(process.env['TOKENS'] || 1_000);
const SEED = Number(process.env['SEED'] || 20_261_125);
const AT_ONCE = 16;

const log = createLogger({ level: 'silent' });
const logged: string[] = [];
for (const level of ['warn', 'error', 'info', 'debug'] as const) {
  log[level] = ((...values: unknown[]) => {
    const withErrors = (_key: string, value: unknown) => (value instanceof Error ? `${value.stack}` : value);
    logged.push(JSON.stringify(values, withErrors));
  }) as never;
}
/** The parts of the facade that were used by the routes, all of which start with its caches. */
const touched: string[] = [];
const facade = new Proxy({ log } as Facade, {
  get(target, name) {
    if (name === 'log') return target.log;
    touched.push(String(name));
    throw new Error('reached');
  },
});

let issuer: TestIssuer;
let attacker: TestIssuer;
let server: FacadeServer;
let port: number;
let good: readonly string[];
const audit = collectAudit();
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
beforeAll(async () => {
  [issuer, attacker] = await Promise.all([startIssuer(), startIssuer('RS256', 'theirs')]);
  const rules = { issuers: [issuer.url], audience: AUDIENCE, algorithms: ['RS256'], clockToleranceSeconds: 0 };
  server = createFacadeServer({
    facade,
    authentication: { ...rules, maxAgeSeconds: 3_600, log },
    metrics: createFacadeMetrics(createRegistry()),
    audit: audit.trail,
    version: '0.0.0',
    limits: { eventLoopDelayMs: 0 },
  });
  port = await server.listen(0, '127.0.0.1');
  good = await Promise.all(Array.from({ length: 20 }, (_, i) => issuer.sign({ sub: `user-${i}`, jti: `${i}` })));
});
afterAll(async () => {
  agent.destroy();
  await server.close();
  await Promise.all([issuer.stop(), attacker.stop()]);
});

interface Answer {
  readonly status: number;
  readonly challenge: string;
  /** All responses. */
  readonly text: string;
}

/** Sends a call of a route. Returns status 0 if there is no response. */
function send(token: string, { method, path: template }: Route): Promise<Answer> {
  const path = template.replace('{tenant}', 'ten_0123456789abcdefghjk').replaceAll(/[{}]/g, '');
  return new Promise(resolve => {
    const failed = (error: Error) => resolve({ status: 0, challenge: '', text: error.message });
    const outgoing = request({ agent, port, method, path, headers: { authorization: `Bearer ${token}` } }, incoming => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', failed);
      incoming.on('end', () =>
        resolve({
          status: incoming.statusCode ?? 0,
          challenge: incoming.headers['www-authenticate'] ?? '',
          text: `${incoming.rawHeaders.join('\n')}\n\n${Buffer.concat(chunks).toString()}`,
        }),
      );
    });
    outgoing.on('error', failed).end();
  });
}

/** Returns parts of a token which must not appear anywhere else, both encoded and decoded. */
function piecesOf(token: string): string[] {
  const parts = token.split('.').filter(part => part.length >= 16);
  const decoded = parts.slice(0, 2).map(part => Buffer.from(part, 'base64url').toString());
  return [...parts, ...decoded].filter(piece => piece.length >= 12).map(piece => piece.slice(0, 40));
}

const INSIDE = /node_modules|\.ts:\d|\bat \w+ \(|\/src\/|process\.env/;

test(
  `none of ${TOKENS} forged tokens is accepted, and none leaves a trace (SEED=${SEED})`,
  async () => {
    const forgeries = Object.entries(createForgeries({ issuer, attacker, good }));
    const failures: string[] = [];
    const reasons = new Map<string, number>();
    let next = 0;
    const worker = async () => {
      for (let i = next++; i < TOKENS; i = next++) {
        const random = createChoices(SEED + i);
        const [name, forge] = forgeries[i % forgeries.length] as (typeof forgeries)[number];
        const token = await forge(random);
        const { status, challenge, text } = await send(token, random.pick(ROUTES));
        const reason = /error_description="([^"]+)"/.exec(challenge)?.[1] ?? 'none';
        reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
        const isRefused = status === 401 && challenge.startsWith('Bearer realm="sluice", error="invalid_token"');
        const isTooLarge = status === 431 && token.length > 16_384;
        const leaks = INSIDE.test(text) || piecesOf(token).some(piece => text.includes(piece));
        if (!(isRefused || isTooLarge) || leaks)
          failures.push(`${name}, ${i}: ${status} ${token.slice(0, 2_000)} ${text}`);
        if (logged.length > 0 && piecesOf(token).some(piece => logged.some(line => line.includes(piece)))) {
          failures.push(`${name}, ${i}: in the log`);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    expect(failures.slice(0, 10)).toEqual([]);
    expect(touched).toEqual([]);
    expect(attacker.reads()).toBe(0);
    // The tokens are rejected for many different reasons, instead of all of them being malformed.
    expect(reasons.size).toBeGreaterThan(12);
    const audited = JSON.stringify(audit.lines);
    expect(audited).not.toMatch(/eyJ[\w-]{10,}/);
    expect(logged.filter(line => line.includes('call failed'))).toEqual([]);
  },
  60_000 + TOKENS * 20,
);

test('the tokens that they are made of get past the guard', async () => {
  const route = ROUTES.find(({ operation }) => operation === 'listCatalog') as Route;
  for (const token of good) expect(await send(token, route)).toMatchObject({ status: 500 });
  expect(touched.length).toBe(good.length);
});
