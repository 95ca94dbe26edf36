import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import type { Identity } from '../../../src/facade/auth/identity.ts';
import { createFacadeMetrics } from '../../../src/facade/facade-metrics.ts';
import type { Facade } from '../../../src/facade/objects/facade.ts';
import { createFacadeServer, type FacadeLimits, type FacadeServer } from '../../../src/facade/server.ts';
import { createClientAddress, createConnectionAddress } from '../../../src/http/client-address.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { createRegistry, type Registry } from '../../../src/telemetry/metrics.ts';
import { createManualClock } from '../manual-clock.ts';
import { type AuditFields, collectAudit } from './collect-audit.ts';
import { AUDIENCE, startIssuer, type TestIssuer } from './issuer.ts';
import { exchange, type RawAnswer } from './raw-exchange.ts';

export const TENANT = 'ten_0123456789abcdefghjk';
export const INTEGRATION = 'int_0123456789abcdefghjk';
export const ACCOUNT = 'acc_0123456789abcdefghjk';
export const CATALOG = `/waas/producer/${TENANT}/catalog`;
export const JSON_BODY = 'Content-Type: application/json';

export interface StartedFacade {
  readonly server: FacadeServer;
  readonly port: number;
  readonly registry: Registry;
  /** The audit lines. */
  readonly audited: readonly AuditFields[];
}

/** Starts facade servers without a cluster and sends requests to them. */
export interface FacadeServers {
  /**
   * Starts a server whose callers own all resources, and whose lists are empty. `hold` delays each call until it
   * resolves, and rejects the call if it throws. If `trustedProxies` is set, there are address limits. `parts` replaces
   * the corresponding parts of the facade.
   */
  readonly start: (
    limits?: Partial<FacadeLimits> & {
      readonly accountPointsPerMinute?: () => number | undefined;
      readonly servesReference?: boolean;
    },
    hold?: (identity: Identity) => Promise<void>,
    trustedProxies?: readonly string[],
    parts?: object,
  ) => Promise<StartedFacade>;
  /** Returns the bytes of a request with a token for `subject`. */
  readonly request: (line: string, headers?: readonly string[], body?: string, subject?: string) => Promise<string>;
  /** Waits for the first event loop measurement because a server rejects calls before that. */
  readonly untilAnswering: (port: number) => Promise<void>;
}

export function createFacadeServers(issuer: TestIssuer): FacadeServers {
  const log = createLogger({ level: 'silent' });

  async function request(line: string, headers: readonly string[] = [], body = '', subject = 'ada'): Promise<string> {
    const token = await issuer.sign({ sub: subject });
    const head = [`${line} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${token}`, ...headers];
    return `${head.join('\r\n')}\r\n\r\n${body}`;
  }

  return {
    request,
    async start(
      { accountPointsPerMinute = () => 30_000, servesReference = true, ...limits } = {},
      hold = async () => {},
      trustedProxies?,
      parts = {},
    ) {
      const owned = async (identity: Identity, publicId: string) => {
        await hold(identity);
        const workspace = { metadata: { name: 'shop' }, spec: { account: 'shop' } };
        const role = 'Owner';
        return { publicId, name: 'shop', workspace, role, producer: 'shop', recipient: { workspace, role } };
      };
      const facade = {
        log,
        caches: { assertCurrent: () => undefined, get: () => undefined, list: () => [] },
        ceilings: {},
        limits: { pointsPerMinuteOf: accountPointsPerMinute },
        // Without a test that moves the clock, no points come back.
        clock: createManualClock(),
        ownership: { tenant: owned, integration: owned, account: owned },
        ...parts,
      } as unknown as Facade;
      const rules = { issuers: [issuer.url], audience: AUDIENCE, algorithms: ['RS256'], clockToleranceSeconds: 0 };
      const registry = createRegistry();
      const audit = collectAudit();
      const server = createFacadeServer({
        facade,
        authentication: { ...rules, log },
        metrics: createFacadeMetrics(registry),
        audit: audit.trail,
        version: '0.0.0',
        servesReference,
        limits,
        addressOf: trustedProxies && createClientAddress(trustedProxies),
        connectionOf: trustedProxies && createConnectionAddress(trustedProxies),
      });
      return { server, registry, audited: audit.lines, port: await server.listen(0, '127.0.0.1') };
    },
    async untilAnswering(port) {
      for (let tries = 0; tries < 100; tries++) {
        if ((await exchange(port, await request(`GET ${CATALOG}`))).status === 200) return;
        await delay(100);
      }
    },
  };
}

/**
 * Starts an issuer before the tests of a file and stops it after them. A facade is closed after the test that has
 * started it, or after all tests if it was started before them.
 */
export function useFacadeServers(): FacadeServers & { readonly issuer: TestIssuer } {
  const issuer = {} as TestIssuer;
  const servers = createFacadeServers(issuer);
  const ofFile: FacadeServer[] = [];
  let ofTest: FacadeServer[] | undefined;
  const closeAll = (started: readonly FacadeServer[] = []) => Promise.all(started.map(server => server.close()));
  beforeAll(async () => {
    Object.assign(issuer, await startIssuer());
  });
  beforeEach(() => {
    ofTest = [];
  });
  afterEach(async () => {
    await closeAll(ofTest);
    ofTest = undefined;
  });
  afterAll(async () => {
    await closeAll(ofFile);
    await issuer.stop?.();
  });
  return {
    ...servers,
    issuer,
    start: async (...options) => {
      const started = await servers.start(...options);
      (ofTest ?? ofFile).push(started.server);
      return started;
    },
  };
}

/** Returns the status and the code of a response, which must be a problem document. */
export function problemOf({ status, headers, body }: RawAnswer): string {
  expect(headers['content-type']).toBe('application/problem+json');
  const { code, status: reported } = JSON.parse(body) as { code: string; status: number };
  expect(reported).toBe(status);
  return `${status} ${code}`;
}
