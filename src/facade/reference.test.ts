import { createRequire } from 'node:module';
import Fastify from 'fastify';
import { expect, onTestFinished, test, vi } from 'vitest';
import type * as Yaml from 'yaml';
import { registerReference } from './reference.ts';

test('the document is printed as YAML once, because this takes long and anyone can request it', async () => {
  const yaml = createRequire(import.meta.resolve('@fastify/swagger-ui'))('yaml') as typeof Yaml;
  const print = vi.spyOn(yaml, 'stringify');
  onTestFinished(() => print.mockRestore());
  const app = Fastify();
  onTestFinished(() => app.close());
  await registerReference(app, '1.0.0');
  const first = await app.inject('/docs/yaml');
  expect(yaml.parse(first.payload)).toEqual((await app.inject('/openapi.json')).json());
  expect((await app.inject('/docs/yaml')).payload).toBe(first.payload);
  expect((await app.inject('/docs/json')).json()).toMatchObject({ openapi: '3.1.0', info: { version: '1.0.0' } });
  expect(print).toHaveBeenCalledTimes(1);
});

test('the document is printed as JSON once, and its bytes are shared with those of the page', async () => {
  const app = Fastify();
  onTestFinished(() => app.close());
  const payloads: unknown[] = [];
  app.addHook('onSend', async (_request, _reply, payload) => void payloads.push(payload));
  await registerReference(app, '1.0.0');
  for (const path of ['/openapi.json', '/docs/json', '/docs/json']) await app.inject(path);
  expect(payloads.map(payload => payload === payloads[0])).toEqual([true, true, true]);
  expect(Buffer.isBuffer(payloads[0])).toBe(true);
});
