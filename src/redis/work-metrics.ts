import { Gauge, type Registry } from '../telemetry/metrics.ts';
import { createSampler } from '../telemetry/sampler.ts';
import type { RedisClient } from './client.ts';
import type { HintKind } from './keys.ts';
import { SAMPLE_EVERY_MS, SAMPLE_PATIENCE_MS } from './redis-metrics.ts';
import { estimateOpenDeliveries, type IndexedWork, surveyWork } from './work-survey.ts';

/** What each index is of, as its label says it. */
const INDEXES: Readonly<Record<string, HintKind>> = { queues: 'r', subscriptions: 'd', replays: 'a', sandbox: 's' };

type Sources = { readonly redis: RedisClient; readonly nowMs: () => number };

/**
 * Registers what waits to be worked on, in every process: who is to do the work may be what is missing. All processes say
 * the same, within their sampling.
 */
export function registerWorkMetrics(registry: Registry, { redis, nowMs }: Sources): void {
  const samplers = Object.entries(INDEXES).map(
    ([index, kind]) => [index, sample(() => surveyWork(redis, kind, nowMs()))] as const,
  );
  const gauge = (name: string, help: string, of: (work: IndexedWork) => number) =>
    new Gauge({
      name,
      help: `${help} All processes report the same value, so use the maximum. The value is updated about every 15 s when the process is scraped. It is NaN if Redis is unavailable.`,
      labelNames: ['index'] as const,
      registers: [registry],
      async collect() {
        for (const [index, sampler] of samplers) {
          const work = await sampler.read();
          this.set({ index }, work === undefined ? Number.NaN : of(work));
        }
      },
    });
  gauge(
    'sluice_work_waiting',
    'Number of items that have work to do now or later, by index: queues (with events to route or to remove), subscriptions (with events to deliver or to retry), replays (accounts with incomplete replays), sandbox (runs).',
    work => work.waiting,
  );
  gauge('sluice_work_due', 'Number of items that are due and are not being processed, by index.', work => work.due);
  gauge(
    'sluice_work_overdue_seconds',
    'Number of seconds that the oldest due item has been waiting, by index. The value is 0 if no items are due. A value of more than a few seconds means that the role is missing, stuck or overloaded.',
    work => work.overdueMs / 1_000,
  );
}

/** Registers the backlog of deliveries; at dispatchers. */
export function registerBacklogMetrics(registry: Registry, { redis, nowMs }: Sources): void {
  const sampler = sample(() => estimateOpenDeliveries(redis, nowMs()));
  new Gauge({
    name: 'sluice_dispatcher_open_deliveries',
    help: 'Number of open deliveries of all subscriptions with an active endpoint. The value is an estimate if there are more than about 64 subscriptions. All processes report the same value, so use the maximum. The value is updated about every 15 s when the process is scraped. It is NaN if Redis is unavailable.',
    registers: [registry],
    async collect() {
      this.set((await sampler.read()) ?? Number.NaN);
    },
  });
}

function sample<T>(look: () => Promise<T>) {
  return createSampler({
    look,
    everyMs: SAMPLE_EVERY_MS,
    patienceMs: SAMPLE_PATIENCE_MS,
    monotonicMs: () => performance.now(),
  });
}
