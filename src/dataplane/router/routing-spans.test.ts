import { expect, test } from 'vitest';
import { createLogger } from '../../telemetry/log.ts';
import type { SpanStart } from '../../telemetry/tracing.ts';
import { createRoutingTrace } from './routing-spans.ts';

const queue = { tenant: 'ten_a', queue: 'orders', gen: '1', epoch: 1 };
const parent = (n: number, flags: string) => `00-${'a'.repeat(32)}-${`${n}`.padStart(16, 'b')}-${flags}`;

function start(readTraceparents: (ids: readonly string[]) => Promise<(string | undefined)[]>) {
  const spans: (SpanStart & { name: string; ended: boolean })[] = [];
  const trace = createRoutingTrace({
    tracing: {
      start(name, span) {
        const made = { name, ended: false, ...span };
        spans.push(made);
        return { traceId: '', traceparent: '', end: () => void (made.ended = true) };
      },
      stop: async () => {},
    },
    readTraceparents: (_queue, ids) => readTraceparents(ids),
    log: createLogger({ level: 'silent' }),
  });
  return { spans, trace };
}

test('a span for each event whose trace is recorded, from when the batch began', async () => {
  const { spans, trace } = start(async () => [parent(1, '01'), undefined, parent(2, '00'), parent(3, '01')]);
  await trace({ queue, ids: ['1-0', '1-1', '1-2', '1-3'], beganMs: 7 });
  expect(spans).toMatchObject([
    { name: 'route orders', kind: 'consumer', parent: parent(1, '01'), startMs: 7, ended: true },
    { parent: parent(3, '01'), attributes: { 'messaging.batch.message_count': 4, 'sluice.tenant': 'ten_a' } },
  ]);
});

test('a large batch is read in part', async () => {
  const read: number[] = [];
  const { spans, trace } = start(async ids => {
    read.push(ids.length);
    return ids.map((_id, i) => parent(i, '01'));
  });
  await trace({ queue, ids: Array.from({ length: 256 }, (_, i) => `1-${i}`), beganMs: 0 });
  expect([read, spans.length]).toEqual([[64], 64]);
});

test('metadata that cannot be read makes no span, and no trouble', async () => {
  const { spans, trace } = start(() => Promise.reject(new Error('away')));
  await trace({ queue, ids: ['1-0'], beganMs: 0 });
  expect(spans).toEqual([]);
});
