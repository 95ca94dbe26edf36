import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { collectAudit } from '../../test/support/facade/collect-audit.ts';
import { AUDIENCE, startIssuer, type TestIssuer } from '../../test/support/facade/issuer.ts';
import { exchange } from '../../test/support/facade/raw-exchange.ts';
import { ROUTE_PERMISSIONS } from '../../test/support/facade/route-permissions.ts';
import { Refusal } from '../http/refusal.ts';
import { createLogger } from '../telemetry/log.ts';
import { createRegistry } from '../telemetry/metrics.ts';
import { systemClock } from '../time/clock.ts';
import type { Identity } from './auth/identity.ts';
import type { Route } from './contract/route.ts';
import { createFacadeMetrics } from './facade-metrics.ts';
import type { Facade } from './objects/facade.ts';
import { describeRoutes } from './openapi.ts';
import { ROUTES } from './routes.ts';
import { createFacadeServer, type FacadeServer } from './server.ts';

const SCOPES = ['waas:read', 'waas:write', 'waas:keys', 'waas:replay'] as const;
const ROLES = ['Owner', 'Admin', 'Viewer', 'nobody'] as const;

const wanted = ({ operation }: Route) => ROUTE_PERMISSIONS[operation] ?? (['none', 'none'] as const);
const scopeWanted = (route: Route): string => wanted(route)[0];

function rolesWanted(route: Route): readonly string[] {
  const weakest = wanted(route)[1];
  return weakest === 'anybody' ? ROLES : ROLES.slice(0, ROLES.findIndex(role => role === weakest) + 1);
}

test('each route has an entry with its requirements, and there are no other entries', () => {
  expect(Object.keys(ROUTE_PERMISSIONS).toSorted()).toEqual(ROUTES.map(({ operation }) => operation).toSorted());
});

const log = createLogger({ level: 'silent' });
let issuer: TestIssuer;
let server: FacadeServer;
let open: FacadeServer;
let [port, openPort] = [0, 0];

/**
 * Callers use their role as the subject. If a route does anything in addition to checking the role, the response is a
 * 500.
 */
const facade = (() => {
  const owned = async ({ subject: role }: Identity, publicId: string) => {
    if (role === 'nobody') throw new Refusal('forbidden');
    const workspace = { metadata: { name: 'shop' }, spec: { account: 'shop' } };
    return { publicId, name: 'shop', workspace, role, producer: 'shop', recipient: { workspace, role } };
  };
  const ownership = { tenant: owned, integration: owned, account: owned };
  const caches = new Proxy({ assertCurrent: () => undefined, get: () => undefined }, { get: refuseAccess });
  const limits = { pointsPerMinuteOf: () => 1_000_000 };
  return new Proxy({ log, ownership, caches, limits, clock: systemClock }, { get: refuseAccess }) as unknown as Facade;
})();

function refuseAccess(target: object, name: string | symbol): unknown {
  if (name in target) return Reflect.get(target, name);
  throw new Error(`reached ${String(name)}`);
}

beforeAll(async () => {
  issuer = await startIssuer();
  const create = (requireScopes: boolean) =>
    createFacadeServer({
      facade,
      authentication: {
        issuers: [issuer.url],
        audience: AUDIENCE,
        algorithms: ['RS256'],
        clockToleranceSeconds: 0,
        requireScopes,
        log,
      },
      metrics: createFacadeMetrics(createRegistry()),
      audit: collectAudit().trail,
      version: '0.0.0',
      limits: { eventLoopDelayMs: 0, pointsPerMinute: 1_000_000 },
    });
  [server, open] = [create(true), create(false)];
  [port, openPort] = await Promise.all([server.listen(0, '127.0.0.1'), open.listen(0, '127.0.0.1')]);
});
afterAll(async () => {
  await Promise.all([server.close(), open.close()]);
  await issuer.stop();
});

const tokens = new Map<string, Promise<string>>();

function tokenOf(role: string, scopes: readonly string[]): Promise<string> {
  const scope = scopes.join(' ');
  const token = tokens.get(`${role} ${scope}`) ?? issuer.sign({ sub: role, scope });
  tokens.set(`${role} ${scope}`, token);
  return token;
}

const DOCUMENT = describeRoutes(ROUTES, '0.0.0');
const IDS: Readonly<Record<string, string>> = {
  tenant: 'ten_0123456789abcdefghjk',
  pkg: 'pkg_0123456789abcdefghjk',
  integration: 'int_0123456789abcdefghjk',
  catalogEntryPublicId: 'cat_0123456789abcdefghjk',
  activation: 'act_0123456789abcdefghjk',
  block: 'blk_0123456789abcdefghjk',
  subscription: 'sub_0123456789abcdefghjk',
  account: 'acc_0123456789abcdefghjk',
  event: 'evt_01mxhs0q00000000123456789abcdefghjk',
};

/** Sends the example from the reference. Returns the status and the code of the response. */
async function call(to: number, route: Route, token: string): Promise<{ outcome: string; challenge?: string }> {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => IDS[name] ?? 'any');
  const example = DOCUMENT.paths[route.path]?.[route.method.toLowerCase()]?.requestBody?.content['application/json'];
  const body = example === undefined ? '' : JSON.stringify(example.example ?? {});
  const form = body === '' ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`];
  const head = [`${route.method} ${path} HTTP/1.1`, 'Host: x', 'Connection: close', `Authorization: Bearer ${token}`];
  const answer = await exchange(to, `${[...head, ...form].join('\r\n')}\r\n\r\n${body}`);
  const { code } = JSON.parse(answer.body || '{}') as { code?: string };
  const challenge = answer.headers['www-authenticate'];
  return { outcome: `${answer.status} ${code}`, ...(challenge === undefined ? {} : { challenge }) };
}

describe.each(ROUTES.map(route => [route.operation, route] as const))('%s', (_, route) => {
  test('is only permitted with its scope and its role', async () => {
    const [scope, roles] = [scopeWanted(route), rolesWanted(route)];
    for (const role of ROLES) {
      for (const scopes of [[], ...SCOPES.map(each => [each]), SCOPES.filter(each => each !== scope), SCOPES]) {
        const { outcome, challenge } = await call(port, route, await tokenOf(role, scopes));
        const caller = `${role} with ${scopes.join(' ')}`;
        if (!scopes.some(each => each === scope)) {
          expect([caller, outcome]).toEqual([caller, '403 insufficient_scope']);
          expect(challenge).toMatch(
            new RegExp(`^Bearer realm="sluice", error="insufficient_scope", .*, scope="${scope}"$`),
          );
        } else if (!roles.includes(role)) {
          expect([caller, outcome]).toEqual([caller, role === 'nobody' ? '403 forbidden' : '403 insufficient_role']);
          expect(challenge).toBeUndefined();
        } else {
          expect([caller, outcome]).not.toEqual([caller, expect.stringMatching(/^40[13] /)]);
        }
      }
    }
  });

  test('does not require a scope unless scopes are configured', async () => {
    for (const role of ROLES) {
      const { outcome } = await call(openPort, route, await tokenOf(role, []));
      if (rolesWanted(route).includes(role)) expect(outcome).not.toMatch(/^40[13] /);
      else expect(outcome).toMatch(/^403 (forbidden|insufficient_role)$/);
    }
  });
});

test('an unknown path has no scope', async () => {
  const route = { ...(ROUTES[0] as Route), method: 'GET', path: '/waas/nothing' } as const;
  expect(await call(port, route, await issuer.sign({ sub: 'Owner' }))).toEqual({ outcome: '404 not_found' });
});

test('the reference contains the scope and the role of each call', () => {
  for (const route of ROUTES) {
    const operation = DOCUMENT.paths[route.path]?.[route.method.toLowerCase()];
    expect(operation?.security).toEqual([{ bearer: [scopeWanted(route)] }]);
    const weakest = rolesWanted(route).at(-1);
    expect(operation?.['x-required-role']).toBe(route.access === 'caller' ? undefined : weakest);
  }
});
