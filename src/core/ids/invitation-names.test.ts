import { expect, test } from 'vitest';
import { freeAccountName, invitedIntegrationName, receivingWorkspaceName } from './invitation-names.ts';

const rootKey = new Uint8Array(32).fill(7);
const LABEL = /^[a-z]+-[0-9a-hjkmnp-tv-z]{20}$/;

test('an address has one name for a producer, in upper or lower case', () => {
  const name = invitedIntegrationName(rootKey, 'shop', 'Ada@Example.com', 0);
  expect(name).toMatch(LABEL);
  expect(invitedIntegrationName(rootKey, 'shop', 'ada@example.COM', 0)).toBe(name);
});

test.each([
  ['another root key', invitedIntegrationName(new Uint8Array(32).fill(8), 'shop', 'ada@example.com', 0)],
  ['another producer', invitedIntegrationName(rootKey, 'shop2', 'ada@example.com', 0)],
  ['another address', invitedIntegrationName(rootKey, 'shop', 'eve@example.com', 0)],
  ['a closed one before', invitedIntegrationName(rootKey, 'shop', 'ada@example.com', 1)],
])('%s results in another name', (_what, name) => {
  expect(name).toMatch(LABEL);
  expect(name).not.toBe(invitedIntegrationName(rootKey, 'shop', 'ada@example.com', 0));
});

test('a free account belongs to an issuer and a subject, and cannot be found by its subject alone', () => {
  const name = freeAccountName(rootKey, 'https://a.example', 'ada@example.com');
  expect(name).toMatch(LABEL);
  expect(freeAccountName(rootKey, 'https://b.example', 'ada@example.com')).not.toBe(name);
  expect(freeAccountName(new Uint8Array(32), 'https://a.example', 'ada@example.com')).not.toBe(name);
});

test('each account that can accept has a separate workspace', () => {
  const name = receivingWorkspaceName('shop', 'int-1', 'free-1');
  expect(name).toMatch(LABEL);
  expect(receivingWorkspaceName('shop', 'int-1', 'free-2')).not.toBe(name);
  expect(receivingWorkspaceName('shop', 'int-2', 'free-1')).not.toBe(name);
  expect(receivingWorkspaceName('shop2', 'int-1', 'free-1')).not.toBe(name);
});
