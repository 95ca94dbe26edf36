import { expect, test } from 'vitest';
import { integrationState, routeState } from './integration-state.ts';

const NOW = 1_000;

/** All 16 combinations. The result is the first of Revoked, Declined, Active, Expired, and Pending that applies. */
const combinations = [false, true].flatMap(revoked =>
  [false, true].flatMap(declined =>
    [false, true].flatMap(granted => [false, true].map(late => ({ revoked, declined, granted, late }))),
  ),
);

test.each(combinations)('%j', ({ revoked, declined, granted, late }) => {
  const spec = {
    ...(revoked ? { revoked: true as const } : {}),
    ...(declined ? { declined: true as const } : {}),
    ...(granted ? { workspace: 'partner' } : { invitedEmail: 'a@example.com' }),
  };
  const first = [
    revoked ? 'Revoked' : undefined,
    declined ? 'Declined' : undefined,
    granted ? 'Active' : undefined,
    late ? 'Expired' : undefined,
    'Pending',
  ].find(state => state !== undefined);
  expect(integrationState({ spec, expiresMs: late ? NOW : NOW + 1 }, NOW)).toBe(first);
  expect(integrationState({ spec }, NOW)).toBe(first === 'Expired' ? 'Pending' : first);
});

test('only routes accepted integrations, and is pending until then', () => {
  expect(routeState('Active')).toBe('active');
  expect(routeState('Pending')).toBe('pending');
  for (const state of ['Declined', 'Expired', 'Revoked'] as const) expect(routeState(state)).toBe('closed');
});
