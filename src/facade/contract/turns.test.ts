import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { problemOf, type StartedFacade, useFacadeServers } from '../../../test/support/facade/facade-server.ts';
import { exchange, type RawAnswer } from '../../../test/support/facade/raw-exchange.ts';
import { createConnectionLimit } from '../../http/connections/connection-limit.ts';
import { Refusal } from '../../http/refusal.ts';
import type { Identity } from '../auth/identity.ts';
import { createTurns, MOST_CALLS_WAITING } from './turns.ts';

const [EVIL, SHOP] = ['ten_00000000000000000000', 'ten_11111111111111111111'];

const facades = useFacadeServers();
let facade: StartedFacade;

/**
 * Starts a facade where a workspace's account is its id. Calls arrive when `arrive` is called. `read` is called
 * for each call that has started. Calls only receive a response while `mayAccess` returns true.
 */
async function start(read: (workspace: string) => unknown, mayAccess = () => true) {
  const arrived: string[] = [];
  const gate = Promise.withResolvers<void>();
  const owned = async (_identity: Identity, publicId: string) => {
    arrived.push(publicId);
    await gate.promise;
    if (!mayAccess()) throw new Refusal('not_found');
    const workspace = { metadata: { name: publicId }, spec: { account: publicId } };
    return { publicId, name: publicId, workspace, role: 'Owner', producer: 'any', recipient: { workspace } };
  };
  const caches = { assertCurrent: () => undefined, get: () => undefined };
  const list = (_kind: string, workspace: string) => {
    started.push(workspace);
    read(workspace);
    return [];
  };
  const started: string[] = [];
  facade = await facades.start({ eventLoopDelayMs: 0 }, undefined, undefined, {
    caches: { ...caches, list },
    ownership: { tenant: owned },
  });
  const send = async (count: number, tenant: string, subject: string): Promise<Promise<RawAnswer>[]> => {
    const bytes = await facades.request(`GET /waas/producer/${tenant}/catalog`, ['Connection: close'], '', subject);
    const before = arrived.length;
    const answers = Array.from({ length: count }, () => exchange(facade.port, bytes));
    while (arrived.length < before + count) await delay(5);
    return answers;
  };
  return { started, send, open: gate.resolve };
}

test('with 200 calls of an account, a call of another account is one of the next to start', async () => {
  const { started, send, open } = await start(() => {});
  const calls = [...(await send(200, EVIL, 'mallory')), ...(await send(1, SHOP, 'ada'))];
  open();
  const answers = await Promise.all(calls);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(started).toHaveLength(201);
  expect(started.indexOf(SHOP)).toBeLessThan(4);
});

test('callers of the same account share their turns', async () => {
  const { started, send, open } = await start(() => {});
  const calls: Promise<RawAnswer>[] = [];
  for (let n = 0; n < 20; n++) calls.push(...(await send(5, EVIL, `mallory-${n}`)));
  calls.push(...(await send(1, SHOP, 'ada')));
  open();
  await Promise.all(calls);
  expect(started.indexOf(SHOP)).toBeLessThan(4);
});

test('calls are refused if too many are waiting', async () => {
  const { send, open, started } = await start(() => {});
  const calls = await send(MOST_CALLS_WAITING + 50, EVIL, 'mallory');
  open();
  const answers = await Promise.all(calls);
  const refused = answers.filter(({ status }) => status !== 200);
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([429]));
  expect(started).toHaveLength(answers.length - refused.length);
  for (const answer of refused) {
    expect(problemOf(answer)).toBe('429 rate_limited');
    expect(answer.headers['retry-after']).toBe('1');
    expect(answer.body).toContain(`${MOST_CALLS_WAITING} calls with your account are waiting`);
  }
  const metrics = await facade.registry.metrics();
  expect(metrics).toContain(`sluice_facade_limited_total{limit="turn"} ${refused.length}`);
  expect(metrics).toContain('sluice_facade_requests_waiting 0');
});

test('calls that have waited are refused if their caller has lost access in the meantime', async () => {
  let mayAccess = true;
  const { started, send, open } = await start(
    () => {
      mayAccess = false;
    },
    () => mayAccess,
  );
  const calls = await send(20, EVIL, 'mallory');
  open();
  const statuses = (await Promise.all(calls)).map(({ status }) => status);
  expect(started).toHaveLength(1);
  expect(statuses.filter(status => status === 200)).toHaveLength(1);
  expect(statuses.filter(status => status === 404)).toHaveLength(19);
});

test('a client that disconnects only cancels calls that do not close anything', async () => {
  facade = await facades.start({ eventLoopDelayMs: 0 });
  const refused: string[] = [];
  const turns = createTurns({ onWaiting: () => {}, onRefused: limit => void refused.push(limit) });
  const identity = { issuer: 'https://issuer.example', subject: 'ada' } as Identity;
  const response = {} as ServerResponse;
  const call = { account: 'shop', identity, signal: AbortSignal.abort(), response };
  const closing = Array.from({ length: 20 }, () => turns.take({ ...call, closes: true }));
  expect(await Promise.all(closing)).toHaveLength(20);
  await expect(turns.take({ ...call, closes: false })).rejects.toThrow(Refusal);
  expect(refused).toEqual([]);
});

/** Starts this many calls of an account that close something, each on its own connection. There is no other place. */
function closeOnAllConnections(count: number) {
  const turns = createTurns({ onWaiting: () => {}, onRefused: () => {} });
  const limit = createConnectionLimit({ perAddress: 1, total: count });
  const state = { closed: 0 };
  const identity = { issuer: 'https://issuer.example', subject: 'ada' } as Identity;
  const call = { account: 'shop', identity, closes: true, signal: new AbortController().signal };
  /** Opens a connection and sends a request. Returns undefined if the connection was not accepted. */
  function connect(): ServerResponse | undefined {
    const socket = Object.assign(new EventEmitter(), { destroy: () => void state.closed++ }) as unknown as Socket;
    if (!limit.accept(socket)) return undefined;
    const req = { socket, complete: true };
    const response = Object.assign(new EventEmitter(), { req, writableEnded: false }) as unknown as ServerResponse;
    limit.serve(response);
    return response;
  }
  const calls = Array.from({ length: count }, () => turns.take({ ...call, response: connect() as ServerResponse }));
  return { calls, state, isAccepted: () => connect() !== undefined };
}

test('waiting calls that close something do not use up the connections, and are all performed', async () => {
  const CROWD = 10;
  // One of these calls starts at once.
  const { calls, state, isAccepted } = closeOnAllConnections(MOST_CALLS_WAITING + 1 + CROWD);
  const others = Array.from({ length: CROWD + 1 }, isAccepted);
  expect(others).toEqual([...Array.from({ length: CROWD }, () => true), false]);
  expect(state.closed).toBe(CROWD);
  for (const each of calls) (await each).leave();
});

test('a call that closes something keeps its connection from its turn on', async () => {
  const { calls, state, isAccepted } = closeOnAllConnections(MOST_CALLS_WAITING + 2);
  for (const each of calls) (await each).leave();
  expect([isAccepted(), state.closed]).toEqual([false, 0]);
});
