import type { RedisClient } from '../redis/client.ts';
import type { HintKind } from '../redis/keys.ts';
import { Gauge, type Registry, registerGauge } from '../telemetry/metrics.ts';
import { createSampler } from '../telemetry/sampler.ts';
import { type IndexedWork, surveyWork } from './work-survey.ts';

/** Used to read the work that is waiting. */
export interface WorkSources {
  readonly redis: RedisClient;
  /** Redis's clock. */
  readonly nowMs: () => number;
}

/** Returns the last result. Undefined while Redis is not available. */
type ReadIndex = () => Promise<IndexedWork | undefined>;

const SAMPLED =
  'All processes report the same value. To aggregate, use the maximum. While the process is scraped, the value is updated about every 15 s. The value is NaN if Redis is unavailable.';

/** Hint indexes in addition to the parts. */
export function surveySharedIndexes(sources: WorkSources): Readonly<Record<string, ReadIndex>> {
  return { replays: sampleHints(sources, 'a'), sandbox: sampleHints(sources, 's') };
}

function sampleHints({ redis, nowMs }: WorkSources, kind: HintKind): ReadIndex {
  return createSampler(() => surveyWork(redis, kind, nowMs()));
}

/** Registers the metrics for all indexes. */
export function registerIndexes(registry: Registry, indexes: Readonly<Record<string, ReadIndex>>): void {
  const gauge = (name: string, help: string, of: (work: IndexedWork) => number) =>
    new Gauge({
      name,
      help: `${help} ${SAMPLED}`,
      labelNames: ['index'] as const,
      registers: [registry],
      async collect() {
        // If Redis hangs, each of them takes a second.
        const works = await Promise.all(Object.values(indexes).map(read => read()));
        for (const [i, index] of Object.keys(indexes).entries()) {
          const work = works[i];
          this.set({ index }, work === undefined ? Number.NaN : of(work));
        }
      },
    });
  gauge(
    'sluice_work_waiting',
    'The number of items with current or future work, by index: queues (queues with events to route or remove), parts (parts of queues with events to deliver or retry), replays (accounts with incomplete replays), and sandbox (runs). Every 15 s, up to 64 parts are checked.',
    work => work.waiting,
  );
  gauge('sluice_work_due', 'The number of items that are due but not being processed, by index.', work => work.due);
  gauge(
    'sluice_work_overdue_seconds',
    'The time that the oldest due item has been waiting, in seconds, by index. The value is 0 if no item is due. If the value exceeds a few seconds, the role is missing, stuck, or overloaded.',
    work => work.overdueMs / 1_000,
  );
}

/** Registers a metric for the backlog of deliveries, which is returned by `read`. */
export function registerBacklog(registry: Registry, read: () => Promise<number | undefined>): void {
  registerGauge(
    registry,
    'sluice_dispatcher_open_deliveries',
    `The number of open deliveries across all subscriptions, including those without an active endpoint. If there are more than 64 parts, the value is an estimate. ${SAMPLED}`,
    read,
  );
}
