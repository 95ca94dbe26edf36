import { fastify, type InjectOptions } from 'fastify';
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
    expect(lines).toHaveLength(11);
    expect(lines[0]).toMatchObject({ msg, requestId: 'req-1', err: { stack: expect.any(String) } });
    expect(lines[10]).toMatchObject({ msg, requestId: 'req-b', detail: expect.stringMatching(/timeout|a bug/) });
    expect(lines.filter(line => 'err' in line)).toHaveLength(1);
    nowMs += 10_000;
    await call();
    expect(lines.at(-1)).toMatchObject({ msg, suppressed: 139 });
    await app.close();
  },
);

test('a response does not contain an unexpected error, and a refused call is not logged', async () => {
  const lines: string[] = [];
  const app = fastify();
  app.setErrorHandler(createErrorHandler(createLogger({ level: 'info' }, { write: line => void lines.push(line) })));
  app.get('/broken', () => {
    throw new TypeError('the password is wrong');
  });
  app.get('/refused', () => {
    throw new Refusal('forbidden');
  });
  app.post('/read', { bodyLimit: 10 }, () => 'read');
  const codeOf = async (request: InjectOptions) => {
    const { statusCode, body } = await app.inject(request);
    return [statusCode, (JSON.parse(body) as { code: string }).code, body] as const;
  };
  const refused = [
    await codeOf({ url: '/refused' }),
    await codeOf({ method: 'POST', url: '/read', payload: '{', headers: { 'content-type': 'application/json' } }),
    await codeOf({ method: 'POST', url: '/read', payload: 'x', headers: { 'content-type': 'text/x' } }),
    await codeOf({ method: 'POST', url: '/read', payload: { text: 'longer than that' } }),
  ];
  expect(refused.map(([status, code]) => `${status} ${code}`)).toEqual([
    '403 forbidden',
    '400 malformed_request',
    '415 unsupported_media_type',
    '413 body_too_large',
  ]);
  expect(refused[3]?.[2]).toContain('at most 10 bytes');
  expect(lines).toEqual([]);
  const [status, code, body] = await codeOf({ url: '/broken' });
  expect([status, code, body.includes('password')]).toEqual([500, 'internal', false]);
  expect(lines).toHaveLength(1);
  await app.close();
});
