import { createInboxStore, inboxMember, parseInboxMember } from '../../redis/inbox-store.ts';
import { queueKeys } from '../../redis/keys.ts';
import { createLedgerStore } from '../../redis/ledger-store.ts';
import { createQueueStore, wakeEntry } from '../../redis/queue-store.ts';
import type { SandboxSource } from '../../redis/sandbox-source.ts';
import { writeRun } from '../../redis/sandbox-store.ts';
import { routeQueue } from '../router/queue.ts';
import type { RunView } from './run-view.ts';

/** Maximum number of integrations to process concurrently. Needed because production routers use the same Redis. */
const ASKED_AT_ONCE = 32;
const BATCH_EVENTS = 64;

export interface RunRoutingDeps {
  readonly source: SandboxSource;
  readonly nowMs: () => number;
  readonly alarm: (slot: string) => void;
  /** Unique id for each start of the process. */
  readonly owner: string;
  /** Returns a different value on every call. */
  readonly nextToken: () => string;
}

/**
 * Routes queue events in a run just as the production router would. We use the current gates of the producer and its
 * integrations, but inboxes belong to the run. Stops after `most` deliveries.
 *
 * @returns number of deliveries, plus the time in milliseconds at which the queue is due, or null
 */
export async function routeRun(
  deps: RunRoutingDeps,
  view: RunView,
  queue: string,
  most: number,
): Promise<{ readonly routed: number; readonly nextMs: number | null }> {
  const { nowMs } = deps;
  const { ofRun, tenant } = view;
  const queues = createQueueStore(ofRun);
  const inboxes = createInboxStore(ofRun);
  const full = new AbortController();
  const limited = createLimit(ASKED_AT_ONCE);
  let routed = 0;
  await wakeOpened(deps, view, queue);
  const nextMs = await routeQueue(
    {
      nowMs,
      alarm: deps.alarm,
      owner: deps.owner,
      signal: full.signal,
      batchEvents: BATCH_EVENTS,
      queues: {
        ...queues,
        // Costs are only counted within the run. No tokens are reserved.
        lookup: async (ref, groupKeys) => {
          const found = await deps.source.lookup(ref, groupKeys);
          return found === undefined ? undefined : { ...found, metered: true };
        },
      },
      inboxes: {
        expire: inboxes.expire,
        route: (inbox, ms, epoch, gen, payer, items) =>
          limited(async () => {
            await view.add(inbox, queue);
            const groupKeys = items.map(({ groupKey }) => groupKey);
            await view.copyGate(inbox, groupKeys);
            return inboxes.route(inbox, ms, epoch, gen, payer, items);
          }),
      },
      ledger: createLedgerStore(ofRun),
      // No need to notify anyone. Events are delivered next by this very process, and after a crash the next process
      // will check all inboxes of the run.
      lower: async () => {},
      onBatch: batch => {
        routed += batch.routed;
        if (routed >= most) full.abort();
      },
    },
    { tenant, queue },
    new Map(),
  );
  return { routed, nextMs: full.signal.aborted ? null : nextMs };
}

/** Wakes waiting inboxes whose gate has opened. In production, this is done by the controller. */
async function wakeOpened({ source, nextToken }: RunRoutingDeps, view: RunView, queue: string): Promise<void> {
  const q = queueKeys(view.tenant, queue);
  const behind = Object.keys(await view.ofRun.readHash(q.behind));
  const open = await Promise.all(
    behind.map(async member => {
      const inbox = parseInboxMember(member);
      const { subscription } = await source.readGate({ tenant: view.tenant, queue, inbox }, []);
      return subscription.route !== 'paused';
    }),
  );
  const woken = behind.filter((_member, i) => open[i]);
  if (woken.length === 0) return;
  const entries = woken.map(member => wakeEntry(inboxMember(parseInboxMember(member)), nextToken()));
  await writeRun(view.ofRun, q.meta, [['SADD', q.wake, ...entries]]);
}

/** Creates a function that allows up to `most` concurrent calls. Any further calls wait until another one has ended. */
function createLimit(most: number): <T>(start: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async start => {
    if (running >= most) await new Promise<void>(resolve => waiting.push(resolve));
    running++;
    try {
      return await start();
    } finally {
      running--;
      waiting.shift()?.();
    }
  };
}
