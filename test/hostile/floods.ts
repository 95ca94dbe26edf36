import type { OpenApiDocument } from '../../src/facade/openapi.ts';
import { renderRequest } from '../system/rest/contract/exchange.ts';
import { createIdPool } from '../system/rest/contract/id-pool.ts';
import { localise } from '../system/rest/contract/local-document.ts';
import { exampleOf, operationsOf } from '../system/rest/contract/requests.ts';
import type { Specimens } from '../system/rest/contract/specimens.ts';
import type { FloodRequest, Manner } from './messages.ts';

/** The targets of the hostile tenant, and how they are flooded. */
export interface Flood {
  readonly name: string;
  readonly role: 'facade' | 'ingress';
  /** Defaults to `requests`. Handshakes flood a server with TLS. */
  readonly manner?: Manner;
  /** The minimum duration of the flood. */
  readonly leastMs?: number;
  readonly requests: readonly FloodRequest[];
  readonly connections: number;
  /**
   * The response that the flood must receive, e.g. its limit. Undefined if the flood may end before it reaches a limit.
   */
  readonly limit?: string;
}

/** The hostile tenant, including its objects and credentials. */
export interface Attacker extends Specimens {
  readonly ingressKey: string;
  /** The stream with a subscription whose endpoint never responds. */
  readonly queue: string;
  readonly groupKey: string;
  /** The subscription to this stream, whose inbox contains 1 GiB of events. */
  readonly fullInbox: string;
  /** Returns the token of another person with the same permissions and a separate number of points. */
  readonly token: () => Promise<string>;
}

const MIB = 1_048_576;
const FORWARDED = { 'x-forwarded-for': '198.51.100.7' };

/** Operations that end the resources used by other operations, which are flooded last. */
const FINAL = new Set(['archivePackage', 'unsubscribe', 'leaveIntegration', 'revokeIntegration']);

/**
 * Returns one flood for each operation of the document. Each flood uses the example of the operation with the objects
 * of the attacker.
 */
export async function routeFloods(document: OpenApiDocument, attacker: Attacker): Promise<Flood[]> {
  const floods: Flood[] = [];
  const rank = (operationId: string) => [...FINAL].indexOf(operationId);
  const operations = operationsOf(document).sort(
    (a, b) => rank(a.operation.operationId) - rank(b.operation.operationId),
  );
  for (const operation of operations) {
    const plan = exampleOf(operation);
    const [path, query, json] = [plan.path, plan.query, plan.json].map(each => localise(each, attacker.ids));
    const tokens = { good: [await attacker.token()], expired: '' };
    const sent = renderRequest({ ...plan, path, query, json } as typeof plan, createIdPool(), tokens);
    const { method, target, body } = sent;
    const headers = { ...(sent.headers as Record<string, string>), ...FORWARDED };
    const request = { method, path: target, headers, ...(body === undefined ? {} : { body: String(body) }) };
    floods.push({ name: operation.operation.operationId, role: 'facade', requests: [request], connections: 16 });
  }
  return floods;
}

/** Returns floods that are more expensive than expected, in addition to the floods of individual routes. */
export async function specialFloods(attacker: Attacker): Promise<Flood[]> {
  const { ids, ingressKey, queue, groupKey, fullInbox } = attacker;
  const signedIn = async () => ({
    ...FORWARDED,
    authorization: `Bearer ${await attacker.token()}`,
    'content-type': 'application/json',
  });
  const events = `/events/${ids['ten_']}/${queue}`;
  const eventHeaders = { ...FORWARDED, 'content-type': 'application/json', 'x-sluice-group-key': groupKey };
  const goodKey = { ...eventHeaders, authorization: `Bearer ${ingressKey}` };
  const event = '{"hello":"world"}';
  const wrongKeys = Array.from({ length: 5_000 }, (_, n) => ({
    method: 'POST',
    path: events,
    headers: { ...eventHeaders, authorization: `Bearer a-wrong-key-with-number-${n}` },
    body: event,
  }));
  const decline = '/waas/invitations/decline';
  return [
    {
      name: 'events with a valid key',
      role: 'ingress',
      requests: [{ method: 'POST', path: events, headers: goodKey, body: event }],
      connections: 32,
      limit: '429 rate_limited',
    },
    {
      name: 'events of 256 KiB',
      role: 'ingress',
      requests: [{ method: 'POST', path: events, headers: goodKey, body: JSON.stringify('x'.repeat(262_000)) }],
      connections: 8,
    },
    { name: 'wrong ingress keys', role: 'ingress', requests: wrongKeys, connections: 32, limit: '429 rate_limited' },
    {
      name: '30000 parameters without a token',
      role: 'facade',
      requests: [{ method: 'GET', path: `/waas/integrations?${'&'.repeat(30_000)}`, headers: FORWARDED }],
      connections: 16,
    },
    {
      name: 'requests without a token',
      role: 'facade',
      requests: [{ method: 'GET', path: '/waas/integrations', headers: FORWARDED }],
      connections: 32,
    },
    {
      name: '1 MiB of numbers',
      role: 'facade',
      requests: [{ method: 'POST', path: decline, headers: await signedIn(), body: `[${'0,'.repeat(MIB / 2 - 10)}0]` }],
      connections: 8,
    },
    {
      name: '1 MiB of numbers in a stream',
      role: 'facade',
      requests: [
        { method: 'PUT', path: '/waas/streams', headers: await signedIn(), body: `[${'0,'.repeat(MIB / 2 - 10)}0]` },
      ],
      connections: 8,
    },
    {
      name: '100000 nested arrays',
      role: 'facade',
      requests: [
        {
          method: 'PUT',
          path: '/waas/streams',
          headers: await signedIn(),
          body: '['.repeat(100_000) + ']'.repeat(100_000),
        },
      ],
      connections: 8,
    },
    {
      name: 'lists of large streams',
      role: 'facade',
      requests: [
        { method: 'GET', path: `/waas/producer/${ids['ten_']}/catalog?limit=250`, headers: await signedIn() },
        { method: 'GET', path: `/waas/integrations/${ids['int_']}/catalog?limit=250`, headers: await signedIn() },
      ],
      connections: 16,
    },
    {
      name: 'the inbox of a stream of 1 GiB',
      role: 'facade',
      requests: [
        {
          method: 'GET',
          path: `/waas/integrations/${ids['int_']}/events?subscription=${fullInbox}&limit=250`,
          headers: await signedIn(),
        },
      ],
      connections: 16,
    },
    {
      name: 'long polls',
      role: 'facade',
      requests: [
        {
          method: 'POST',
          path: `/waas/integrations/${ids['int_']}/pull`,
          headers: await signedIn(),
          body: JSON.stringify({ subscription: ids['sub_'], waitSeconds: 20 }),
        },
      ],
      connections: 3_000,
      limit: '429 rate_limited',
    },
    {
      name: 'unknown ids',
      role: 'facade',
      requests: await Promise.all(
        Array.from({ length: 500 }, async (_, n) => ({
          method: 'GET',
          path: `/waas/integrations/int_${n.toString(16).padStart(20, '0')}/events?subscription=${ids['sub_']}`,
          headers: await signedIn(),
        })),
      ),
      connections: 16,
    },
  ];
}

/** The time after which a request that has not arrived is certain to be closed. */
const EXPIRED_MS = 16_000;

/** Floods of connections, those with TLS last. */
export function connectionFloods(): Flood[] {
  const roles = ['facade', 'ingress'] as const;
  const slow = roles.map(role => ({ role, manner: 'slow' as const, leastMs: EXPIRED_MS, connections: 3_000 }));
  const secure = roles.flatMap(role => [
    { role, manner: 'handshakes' as const, connections: 100 },
    { role, manner: 'unfinished handshakes' as const, connections: 1_000 },
  ]);
  return [...slow, ...secure].map(flood => ({ ...flood, name: `${flood.manner} to ${flood.role}`, requests: [] }));
}
