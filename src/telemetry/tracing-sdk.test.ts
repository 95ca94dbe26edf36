import { afterEach, expect, test } from 'vitest';
import { type OtlpReceiver, startOtlpReceiver } from '../../test/support/otlp-receiver.ts';
import { createLogger } from './log.ts';
import { parseTraceparent } from './tracing.ts';
import type { TracingConfig } from './tracing-config.ts';
import { openTracing } from './tracing-sdk.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

const log = createLogger({ level: 'silent' });
const TRACE = '0af7651916cd43dd8448eb211c80319c';

let receiver: OtlpReceiver | undefined;
afterEach(() => receiver?.close());

async function open(config: Partial<TracingConfig> = {}) {
  receiver = await startOtlpReceiver();
  const tracing = await openTracing(
    {
      url: `${receiver.url}/v1/traces`,
      protocol: 'http/json',
      headers: { 'x-key': 'of the collector' },
      timeoutMs: 5_000,
      delayMs: 5_000,
      sampler: { parentBased: true, ratio: 1 },
      attributes: { 'service.name': 'sluice-test' },
      ...config,
    },
    { version: '1.2.3', log },
  );
  return { tracing, receiver };
}

test('a span continues the trace of its parent, and has a separate traceparent', async () => {
  const { tracing, receiver } = await open();
  const outer = tracing.start('outer', { kind: 'server', parent: `00-${TRACE}-b7ad6b7169203331-01` });
  const inner = tracing.start('inner', { kind: 'client', parent: outer.traceparent, attributes: { n: 1, s: 'x' } });
  inner.end({ attributes: { late: true }, error: 'timeout' });
  outer.end();
  await tracing.stop();

  const spanIdOf = (traceparent: string) => parseTraceparent(traceparent)?.spanId;
  expect(receiver.spans.toSorted((a, b) => (a.name < b.name ? 1 : -1))).toMatchObject([
    { name: 'outer', service: 'sluice-test', kind: 2, traceId: TRACE, parentSpanId: 'b7ad6b7169203331', failed: false },
    {
      name: 'inner',
      kind: 3,
      traceId: TRACE,
      spanId: spanIdOf(inner.traceparent),
      parentSpanId: spanIdOf(outer.traceparent),
      attributes: { n: 1, s: 'x', late: true, 'error.type': 'timeout' },
      failed: true,
    },
  ]);
  expect(inner.traceId).toBe(TRACE);
  expect(receiver.requests[0]).toMatchObject({ path: '/v1/traces', headers: { 'x-key': 'of the collector' } });
});

test('an unsampled trace is passed on as unsampled, and not sent', async () => {
  const { tracing, receiver } = await open();
  const span = tracing.start('unseen', { kind: 'server', parent: `00-${TRACE}-b7ad6b7169203331-00` });
  expect(span.traceparent).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`));
  span.end();
  await tracing.stop();
  expect(receiver.requests).toEqual([]);
});

test('records the configured share', async () => {
  const { tracing, receiver } = await open({ sampler: { parentBased: true, ratio: 0.25 } });
  for (let i = 0; i < 2_000; i++) tracing.start('root', { kind: 'internal' }).end();
  await tracing.stop();
  expect(receiver.spans.length).toBeGreaterThan(380);
  expect(receiver.spans.length).toBeLessThan(620);
});

test('supports protobuf', async () => {
  const { tracing, receiver } = await open({ protocol: 'http/protobuf' });
  tracing.start('named in bytes', { kind: 'internal' }).end();
  await tracing.stop();
  const [request] = receiver.requests;
  expect(request?.headers['content-type']).toBe('application/x-protobuf');
  expect(request?.body.includes('named in bytes')).toBe(true);
});

test('a missing collector does not stop anything, and is logged once', async () => {
  const lines: string[] = [];
  const loud = createLogger({ level: 'warn' });
  loud.warn = ((line: string) => lines.push(line)) as never;
  const tracing = await openTracing(
    {
      url: 'http://127.0.0.1:1/v1/traces',
      protocol: 'http/json',
      headers: {},
      timeoutMs: 500,
      delayMs: 1,
      sampler: { parentBased: false, ratio: 1 },
      attributes: {},
    },
    { version: '1', log: loud },
  );
  tracing.start('lost', { kind: 'internal' }).end();
  await expect.poll(() => lines.length, SOON).toBe(1);
  tracing.start('lost, too', { kind: 'internal' }).end();
  await tracing.stop();
  expect(lines).toEqual(['failed to export spans: check OTEL_EXPORTER_OTLP_ENDPOINT and the collector']);
});
