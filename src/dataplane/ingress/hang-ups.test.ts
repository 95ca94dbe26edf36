import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { ITEM_OVERHEAD_BYTES } from './queue-batches.ts';
import type { SandboxDesk } from './sandbox/sandbox-route.ts';
import { OF_EVENTS } from './sandbox/sandbox-turns.ts';
import { startIngress } from './testing/ingress-harness.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

type Role = Awaited<ReturnType<typeof startIngress>>;

const SENDERS = 20;
/**
 * The capacity, which is sufficient for the events of all senders, but not for another round. A workspace can use half
 * of it.
 */
const HELD_BYTES = 2 * SENDERS * (ITEM_OVERHEAD_BYTES + 2);

let role: Role;
afterEach(() => role.ingress.close());

const sumOf = (metrics: string, pattern: RegExp) =>
  [...metrics.matchAll(pattern)].reduce((sum, [, value]) => sum + Number(value), 0);

/** Returns the number of held bytes, and the number of senders that have disconnected before the response. */
async function look() {
  const metrics = await role.registry.metrics();
  return {
    held: sumOf(metrics, /^sluice_ingress_held_bytes (\d+)/gm),
    left: sumOf(metrics, /^sluice_(?:ingress|sandbox)_requests_total\{code="499"\} (\d+)/gm),
  };
}

/** Returns the number of requests whose headers have arrived. */
function countRequests(): () => number {
  let requests = 0;
  role.ingress.app.server.on('request', () => requests++);
  return () => requests;
}

async function connections(): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  role.ingress.app.server.getConnections((_error, count) => resolve(count));
  return promise;
}

/** Connects all senders. They write the text and disconnect once their requests have been received. */
async function hangUp(text: string, requests: number): Promise<void> {
  const arrived = countRequests();
  const sockets = Array.from({ length: SENDERS }, () => connect(role.port, '127.0.0.1').on('error', () => {}));
  for (const socket of sockets) socket.write(text);
  await Promise.all(sockets.filter(({ connecting }) => connecting).map(socket => once(socket, 'connect')));
  await vi.waitFor(() => expect(arrived()).toBe(SENDERS * requests), SOON);
  for (const socket of sockets) socket.destroy();
  await vi.waitFor(async () => expect(await connections()).toBe(0), SOON);
}

/** Makes the store wait for the promise in one of its steps. */
type Hold = (gate: Promise<void>) => void;

const holdQueue =
  (from: number): Hold =>
  gate => {
    const read = role.store.readQueue;
    let reads = 0;
    role.store.readQueue = async (...of) => {
      if (++reads >= from) await gate;
      return read(...of);
    };
  };

/** The steps at which senders disconnect, and the part of the body that they have sent. */
const STAGES: Readonly<Record<string, { hold?: Hold; body?: string }>> = {
  'while the key is looked up': { hold: gate => void (role.store.holdLookups = gate) },
  'while the queue is read': { hold: holdQueue(1) },
  'before the body': { body: '' },
  'within the body': { body: '{' },
};

/** These steps are executed even if the sender has disconnected. */
const LATER: Readonly<Record<string, { hold: Hold }>> = {
  'while the event is stored': { hold: gate => void (role.store.hold = gate) },
  'while the queue is read again': {
    hold: gate => {
      holdQueue(2)(gate);
      role.store.answer = 'STALE';
    },
  },
};

const headOf = (path: string, length = 2) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${role.store.key}\r\ncontent-length: ${length}\r\n\r\n`;
const production = () => `/events/${role.store.tenant}/orders`;
const sandbox = () => `/events/sandbox/${role.store.tenant}/orders`;

/** Expects that nothing is held, that disconnected senders are counted, and that the next event is accepted. */
async function expectNothingHeld(path: string, left: number): Promise<void> {
  await vi.waitFor(async () => expect(await look()).toEqual({ held: 0, left }), SOON);
  role.store.answer = undefined;
  expect((await role.send({ path, body: '{}' })).status).toBe(202);
}

const desk: SandboxDesk = { publish: async () => ({ answer: 'OK' }) as never, report: async () => undefined };
const start = async (given: SandboxDesk = desk) => {
  role = await startIngress({ heldBytes: HELD_BYTES, sandboxHeldBytes: HELD_BYTES }, given);
};

test.each(
  Object.entries(STAGES).flatMap(([when, stage]) =>
    [production, sandbox].map(path => [when, path === sandbox ? 'sandbox' : 'production', path, stage] as const),
  ),
)('senders that disconnect %s (%s) do not leave any data', async (_when, _kind, path, { hold, body = '{}' }) => {
  await start();
  const gate = Promise.withResolvers<void>();
  hold?.(gate.promise);
  await hangUp(headOf(path()) + body, 1);
  gate.resolve();
  await expectNothingHeld(path(), SENDERS);
});

test.each(Object.entries(LATER))('senders that disconnect %s do not leave any data', async (_when, { hold }) => {
  await start();
  const gate = Promise.withResolvers<void>();
  hold(gate.promise);
  await hangUp(`${headOf(production())}{}`, 1);
  gate.resolve();
  await expectNothingHeld(production(), 0);
});

test('senders that disconnect while their sandbox event is stored do not leave any data', async () => {
  const gate = Promise.withResolvers<void>();
  await start({
    ...desk,
    publish: async () => {
      await gate.promise;
      return { answer: 'OK' } as never;
    },
  });
  await hangUp(`${headOf(sandbox())}{}`, 1);
  gate.resolve();
  // The events that wait for their turn are not stored.
  await expectNothingHeld(sandbox(), SENDERS - OF_EVENTS.places);
});

test('senders that disconnect with several requests on a connection do not leave any data', async () => {
  await start();
  const gate = Promise.withResolvers<void>();
  holdQueue(1)(gate.promise);
  await hangUp(`${headOf(production())}{}`.repeat(3), 3);
  gate.resolve();
  await expectNothingHeld(production(), 3 * SENDERS);
});

test('senders that disconnect within a body that is too large do not leave any data', async () => {
  await start();
  await hangUp(`${headOf(production(), 300_000)}{`, 1);
  await expectNothingHeld(production(), 0);
});
