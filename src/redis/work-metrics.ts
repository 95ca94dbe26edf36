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
      help: `${help} The same value is reported by all processes, so be sure to aggregate using the maximum. Updated roughly every 15 s when the process is scraped. Will be NaN while Redis is unavailable.`,
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
    'Number of items with work to do, either now or later, by index: queues (events to route or remove), subscriptions (events to deliver or retry), replays (accounts with incomplete replays), and sandbox (runs).',
    work => work.waiting,
  );
  gauge('sluice_work_due', 'Number of items that are due but not being processed, by index.', work => work.due);
  gauge(
    'sluice_work_overdue_seconds',
    'How many seconds the oldest due item has been waiting, by index, or 0 if none are due. More than a few seconds indicate that the role is missing, stuck, or overloaded.',
    work => work.overdueMs / 1_000,
  );
}

/** Registers the backlog of deliveries; at dispatchers. */
export function registerBacklogMetrics(registry: Registry, { redis, nowMs }: Sources): void {
  const sampler = sample(() => estimateOpenDeliveries(redis, nowMs()));
  new Gauge({
    name: 'sluice_dispatcher_open_deliveries',
    help: 'Number of open deliveries across all subscriptions with an active endpoint, which is an estimate above roughly 64 subscriptions. The same value is reported by all processes, so be sure to aggregate using the maximum. Updated roughly every 15 s when the process is scraped. Will be NaN while Redis is unavailable.',
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
