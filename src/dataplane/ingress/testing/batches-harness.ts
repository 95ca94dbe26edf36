import type { Clock } from '../../../time/clock.ts';
import { createBatches } from '../batches.ts';
import { INGRESS_LIMITS, type IngressLimits } from '../limits.ts';
import type { IngestAnswer, IngestItem, QueueConfig } from '../store.ts';
import { QUEUE } from './memory-store.ts';

/** Returns an event with a body of this size. */
export const item = (id: string, bytes = 0): IngestItem & { readonly id: string } => ({
  id,
  type: undefined,
  groupKey: undefined,
  contentType: undefined,
  traceparent: undefined,
  forward: {},
  body: Buffer.alloc(bytes),
});

/** Creates batches whose calls are ended by the test. */
export function harness(limits: Partial<IngressLimits> = {}, clock?: Clock) {
  const calls: {
    queue: string;
    cfgv: string;
    ids: string[];
    finish: (answers?: IngestAnswer[] | Error, failure?: Error) => void;
    /** Stores the first events only. */
    finishFirst: (count: number) => void;
  }[] = [];
  const settled: string[] = [];
  const failures: string[] = [];
  const batches = createBatches({
    limits: { ...INGRESS_LIMITS, ...limits },
    onFailure: operation => failures.push(operation),
    ...(clock === undefined ? {} : { clock }),
    ingest: (_tenant, queue, config, items) =>
      new Promise((resolve, reject) => {
        const finish = (given?: IngestAnswer[] | Error, failure?: Error): void => {
          const answers = given ?? stored;
          if (answers instanceof Error) reject(answers);
          else resolve({ answers, failure });
        };
        const ids = items.map(({ id = '' }) => id);
        const stored = ids.map((id): IngestAnswer => ({ answer: 'OK', ref: id, id }));
        const finishFirst = (count: number) => resolve({ answers: stored.slice(0, count), isPartial: true });
        calls.push({ queue, cfgv: config.cfgv, ids, finish, finishFirst });
      }),
  });
  const submit = (each: ReturnType<typeof item>, queue = 'q', config: QueueConfig = QUEUE): boolean =>
    batches.submit('t', queue, config, each, answer => settled.push(`${each.id} ${answer.answer}`)) === undefined;
  return { batches, calls, settled, failures, submit };
}
