import { fastify } from 'fastify';
import { expect, test } from 'vitest';
import { Refusal } from '../../http/refusal.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createErrorHandler } from './error-handler.ts';

test.each([
  ['/unavailable', 503, 'call could not be answered'],
  ['/broken', 500, 'call failed'],
])(
  'during an outage, only some of the failures of %s are logged, with the id of the request',
  async (url, status, msg) => {
    const lines: Record<string, unknown>[] = [];
    let nowMs = 0;
    const log = createLogger({ level: 'info' }, { write: line => void lines.push(JSON.parse(line)) });
    const app = fastify();
    app.setErrorHandler(createErrorHandler(log, () => nowMs));
    app.get('/unavailable', () => {
      throw new Refusal('unavailable', { cause: new Error('timeout') });
    });
    app.get('/broken', () => {
      throw new TypeError('a bug');
    });
    const call = async () => (await app.inject(url)).statusCode;
    for (let n = 0; n < 150; n++) expect(await call()).toBe(status);
    expect(lines).toHaveLength(100);
    expect(lines[99]).toMatchObject({ msg, requestId: 'req-2s', err: { message: expect.any(String) } });
    nowMs += 10_000;
    await call();
    expect(lines.at(-1)).toMatchObject({ msg, suppressed: 50 });
    await app.close();
  },
);
