import { expect, it } from 'vitest';
import { z } from 'zod';
import { endpointUrl } from './endpoint-url.ts';
import { endpointHeaderName, forwardedHeaderName } from './header-names.ts';
import { emailAddress, objectName, text, timestamp } from './strings.ts';

it('counts characters in the same way as Kubernetes: as code points', () => {
  expect(text({ min: 1, max: 2 }).safeParse('🦊🦊').success).toBe(true);
  expect(text({ min: 1, max: 2 }).safeParse('🦊🦊🦊').success).toBe(false);
  expect(text({ min: 1, max: 2 }).safeParse('').success).toBe(false);
});

it('keeps limits and rules if a description and optional are added', () => {
  const schema = z.object({ a: emailAddress().describe('An address.').optional() });
  expect(z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input' }).properties?.a).toMatchObject({
    description: 'An address.',
    maxLength: 254,
    'x-kubernetes-validations': [{ message: 'must be an email address such as ada@example.com' }],
  });
});

it.each([
  [objectName(), 'a', true],
  [objectName(), 'a-1', true],
  [objectName(), '-a', false],
  [objectName(), 'A', false],
  [objectName(), 'a.b', false],
  [objectName(), 'x'.repeat(64), false],
  [emailAddress(), 'a@b.example', true],
  [emailAddress(), 'a@-b.example', false],
  [emailAddress(), 'a@b.example\n', false],
  [timestamp(), '2026-01-31T12:00:00.123456Z', true],
  [timestamp(), 'tomorrow', false],
  [endpointUrl(), 'https://a.example:443/x?y=%20#z', true],
  [endpointUrl(), 'https://[::1]:1', true],
  [endpointUrl(), 'https://a.example:0', false],
  [endpointUrl(), 'https://münchen.example', false],
  [endpointUrl(), 'https://a@b.example', false],
  [endpointUrl(), '//a.example', false],
  [forwardedHeaderName(), 'X-Region', true],
  [forwardedHeaderName(), 'Authorization', false],
  [forwardedHeaderName(), 'x region', false],
  [endpointHeaderName(), 'Authorization', true],
  [endpointHeaderName(), 'Content-Length', false],
  [endpointHeaderName(), 'webhook-id', false],
])('case %#: $1', (schema, value, accepted) => {
  expect(schema.safeParse(value).success).toBe(accepted);
});
