import fastify from 'fastify';
import { expect, test } from 'vitest';
import { serveOpenApi } from './openapi-document.ts';

test('the document is created for the first request, and only once', async () => {
  let created = 0;
  const app = fastify();
  serveOpenApi(app, () => ({ openapi: '3.1.0', created: ++created }));
  await app.ready();
  expect(created).toBe(0);
  const answers = [await app.inject('/openapi.json'), await app.inject('/openapi.json')];
  expect(answers.map(answer => answer.json())).toEqual([1, 1].map(created => ({ openapi: '3.1.0', created })));
  await app.close();
});

test('all responses share the bytes of the document, which can be slow to read', async () => {
  const app = fastify();
  const payloads = new Set<unknown>();
  app.addHook('onSend', async (_request, _reply, payload) => void payloads.add(payload));
  serveOpenApi(app, () => ({ openapi: '3.1.0' }));
  for (let count = 0; count < 2; count++) expect((await app.inject('/openapi.json')).statusCode).toBe(200);
  expect([...payloads].map(payload => Buffer.isBuffer(payload))).toEqual([true]);
  await app.close();
});
