import { simulatedStatus } from '../../../core/delivery/simulation.ts';
import { type DispositionFacts, dispositionOf } from '../../../core/routing/event-disposition.ts';
import { START_MS } from '../../../record/testing/tenant.ts';
import type { RedisClient } from '../../../redis/client.ts';
import type { AttemptRequest, AttemptResult } from '../../dispatcher/endpoint-client.ts';
import { judgeStatus } from '../../dispatcher/outcome.ts';
import { createSandbox, type Sandbox, sealed } from './sandbox.ts';

/** The integrations that are used for the comparison with production. */
export const NAMES = ['x', 'y', 'paused', 'pending', 'pulls', 'unordered'];

/** A single event. An event consists of a group key and how the simulated endpoints should respond. */
export const EVENTS = [
  ['a', {}],
  ['a', { failCode: 503, failCount: 2 }],
  ['b', {}],
  ['a', {}],
  [undefined, {}],
  ['c', { failCode: 404 }],
  ['closed', {}],
  ['b', { failCount: 1 }],
  ['c', {}],
  ['a', { failCode: 301, failCount: 20 }],
] as const;

export function groupKeyOf(id: string): string {
  return EVENTS[Number(id.slice(1))]?.[0] ?? '';
}

/**
 * Returns the outcome of an event for an integration. If the event was not routed, the outcome includes the reason that
 * was determined when the event was accepted.
 */
export function endOf(facts: DispositionFacts) {
  const { disposition, reason } = dispositionOf(facts);
  const { state, attempts, history } = facts.progress ?? {};
  return { disposition, reason, state, attempts, statuses: history?.map(({ result }) => result) };
}

/**
 * The ids of all events in a lane, in the order in which they have ended. There is no order between different lanes.
 */
export function orderOf(ended: readonly (readonly [id: string, ms: number])[], groupKey: string): string[] {
  const lane = ended.filter(([id]) => groupKeyOf(id) === groupKey);
  return lane.toSorted((a, b) => a[1] - b[1]).map(([id]) => id);
}

/** Creates a tenant that has these integrations. */
export async function prepare(redis: RedisClient): Promise<Sandbox> {
  const s = createSandbox(redis);
  const { t } = s;
  const endpoint = (name: string) => sealed(name, [5_000, 300_000, 3_600_000]);
  await t.apply(
    t.routes({
      x: { sub: { endpoint: endpoint('x') } },
      y: { sub: { endpoint: endpoint('y') } },
      paused: { sub: { endpoint: endpoint('paused'), route: 'paused', send: 'held' } },
      pending: { state: 'pending', sub: { endpoint: endpoint('pending') } },
      pulls: { sub: { endpoint: '', send: 'held' } },
      unordered: { sub: { endpoint: endpoint('unordered'), unordered: true } },
    }),
  );
  for (const name of NAMES) for (const groupKey of ['a', 'b']) await t.activate(name, groupKey);
  await t.activate('x', 'c');
  await t.activate('y', 'closed', START_MS + 60_000);
  await t.deactivate('y', 'closed');
  return s;
}

/**
 * Creates an endpoint which responds as specified by the events. The number of attempts for each name and event is in
 * `made`.
 */
export function answering(name: string, made: Map<string, number>) {
  return async ({ headers = '' }: AttemptRequest): Promise<AttemptResult> => {
    const id = /^webhook-id: (.*)\r$/m.exec(headers)?.[1] as string;
    const number = (made.get(`${name} ${id}`) ?? 0) + 1;
    made.set(`${name} ${id}`, number);
    const status = simulatedStatus(EVENTS[Number(id.slice(1))]?.[1] ?? {}, number);
    return { ...judgeStatus(status), status, latencyMs: 0, responseBody: Buffer.alloc(0), truncated: false };
  };
}
