import { expect, test } from 'vitest';
import { notSynced } from './parts.ts';

test('a kind whose cache is out of date does not stop the others', () => {
  expect(notSynced(['/api/v1/namespaces'], 'partial')).toMatchObject([{ reason: 'CachesNotSynced', cause: 'partial' }]);
});

test('names each kind whose caches are empty once', () => {
  expect(notSynced([])).toEqual([]);
  expect(notSynced(['/api/v1/namespaces', '/api/v1/secrets', '/api/v1/secrets'])).toMatchObject([
    { message: expect.stringMatching(/^The caches of \/api\/v1\/namespaces, \/api\/v1\/secrets are empty/) },
  ]);
});
