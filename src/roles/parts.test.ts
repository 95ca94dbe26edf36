import { expect, test } from 'vitest';
import { notSynced } from './parts.ts';

test('names each kind whose caches are empty once', () => {
  expect(notSynced([])).toEqual([]);
  expect(notSynced(['/api/v1/namespaces', '/api/v1/secrets', '/api/v1/secrets'])).toMatchObject([
    { message: expect.stringMatching(/^The caches of \/api\/v1\/namespaces, \/api\/v1\/secrets are empty/) },
  ]);
});
