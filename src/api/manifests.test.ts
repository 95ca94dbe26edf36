import { expect, it } from 'vitest';
import { MANIFESTS } from '../../test/system/control/manifests/table.ts';
import { KINDS } from './kinds/kinds.ts';

const stored = {
  name: 'x',
  namespace: 'acme',
  uid: '2c2b0b4e-6f0c-4a0a-9a57-0c3d3c8a2f11',
  resourceVersion: '1',
  generation: 1,
  creationTimestamp: '2026-01-01T00:00:00Z',
};

// The API server test uses the same table. If the schemas had different rules, it might not be possible to parse a
// stored object.
const cases = MANIFESTS.filter(found => !found.serverOnly).map(found => ({
  ...found,
  verdict: found.refusal === undefined ? 'accepts' : 'refuses',
}));

it.each(cases)('$kind $verdict $title, like the API server', ({ kind, spec, refusal }) => {
  const object = { apiVersion: 'sluice.dev/v1alpha1', kind, metadata: stored, spec };
  expect(KINDS[kind].schema.safeParse(object).success).toBe(refusal === undefined);
});
