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
