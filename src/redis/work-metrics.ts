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
      help: `${help} Every process says the same: take the maximum. Asked for about every 15 s, when scraped; NaN while Redis is away.`,
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
    'What has something to do now or later, by index: queues (with events to route, or to remove after their retention), subscriptions (with events to deliver or to try again), replays (accounts with replays that are not complete), sandbox (runs).',
    work => work.waiting,
  );
  gauge('sluice_work_due', 'What is due and nobody has taken up yet, by index.', work => work.due);
  gauge(
    'sluice_work_overdue_seconds',
    'For how long the oldest of what is due has found nobody, by index; 0 when nothing is due. More than some seconds: its role is missing, stuck or overloaded.',
    work => work.overdueMs / 1_000,
  );
}

/** Registers the backlog of deliveries; at dispatchers. */
export function registerBacklogMetrics(registry: Registry, { redis, nowMs }: Sources): void {
  const sampler = sample(() => estimateOpenDeliveries(redis, nowMs()));
  new Gauge({
    name: 'sluice_dispatcher_open_deliveries',
    help: 'Deliveries that are not done yet, of all subscriptions that are sent to now: counted up to some 64 subscriptions, estimated from as many beyond. Every dispatcher says the same: take the maximum. Asked for about every 15 s, when scraped; NaN while Redis is away.',
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
