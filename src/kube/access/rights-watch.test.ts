import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createLogger } from '../../telemetry/log.ts';
import type { KubeClient } from '../client.ts';
import { CONTROLLER_RULES, LEASE_RULES } from './rights.ts';
import { createRightsWatch, type NeededRole, rightsOf } from './rights-watch.ts';

type Attributes = ReturnType<typeof rightsOf>[number];

const ROLE: NeededRole = {
  name: 'sluice-test',
  rules: [
    { apiGroups: ['sluice.dev'], resources: ['blocks', 'blocks/status'], verbs: ['get', 'patch'] },
    { apiGroups: [''], resources: ['secrets'], resourceNames: ['a', 'b'], verbs: ['get'] },
  ],
};

function start(refuses: (right: Attributes) => boolean) {
  const state = { refuses, asked: 0, away: false, refusals: 0 };
  const create = async (_resource: unknown, _name: unknown, body: object) => {
    state.asked++;
    if (state.away) throw new Error('no answer');
    const { spec } = body as { spec: { resourceAttributes: Attributes } };
    return { status: { allowed: !state.refuses(spec.resourceAttributes) } };
  };
  const clock = createManualClock();
  const log = createLogger({ level: 'silent' });
  const stop = new AbortController();
  const client = { create, refusals: () => state.refusals } as unknown as Pick<KubeClient, 'create' | 'refusals'>;
  const watch = createRightsWatch({ client, roles: [ROLE], clock, log });
  const running = watch.run(stop.signal);
  return Object.assign(state, { clock, impairments: watch.impairments, end: () => (stop.abort(), running) });
}

test('checks each verb of each resource, with the names in a rule', () => {
  const asked = rightsOf(ROLE).map(({ verb, group, resource, subresource, name }) =>
    [verb, group, resource, subresource, name].filter(word => word !== undefined).join(' '),
  );
  expect(asked).toEqual([
    'get sluice.dev blocks',
    'patch sluice.dev blocks',
    'get sluice.dev blocks status',
    'patch sluice.dev blocks status',
    'get  secrets a',
    'get  secrets b',
  ]);
  expect(rightsOf({ name: 'x', rules: CONTROLLER_RULES }).length).toBeGreaterThan(50);
  expect(rightsOf({ name: 'x', rules: LEASE_RULES, namespace: 'n' }).map(({ namespace }) => namespace)).toEqual([
    'n',
    'n',
    'n',
  ]);
});

test('reports missing permissions and the role to bind until they are granted', async () => {
  const watched = start(({ verb, resource }) => verb === 'patch' || resource === 'secrets');
  await watched.clock.advance(0);
  // Checks once more before the report because a binding may just have been created.
  expect(watched.impairments()).toEqual([]);
  await watched.clock.advance(2_000);
  expect(watched.impairments()).toEqual([
    {
      reason: 'Forbidden',
      cause: 'settings',
      message:
        'Kubernetes does not grant patch blocks.sluice.dev, patch blocks.sluice.dev/status, get secrets: bind the ClusterRole sluice-test of config/rbac to the user of KUBECONFIG or to the service account of the pod.',
    },
  ]);
  watched.refuses = () => false;
  await watched.clock.advance(10_000);
  expect(watched.impairments()).toEqual([]);
  await watched.end();
});

test('checks less often while everything is granted, and detects removed permissions', async () => {
  const watched = start(() => false);
  await watched.clock.advance(500_000);
  expect([watched.asked, watched.impairments()]).toEqual([6, []]);
  watched.refuses = () => true;
  await watched.clock.advance(110_000);
  expect(watched.impairments()).toHaveLength(1);
  await watched.end();
});

test('checks all permissions soon after a request was refused, but at most once a minute', async () => {
  const watched = start(() => false);
  await watched.clock.advance(100_000);
  watched.refuses = ({ verb }) => verb === 'patch';
  watched.refusals++;
  await watched.clock.advance(12_000);
  expect(watched.impairments()).toHaveLength(1);
  watched.refuses = () => false;
  await watched.clock.advance(10_000);
  expect(watched.impairments()).toEqual([]);
  const before = watched.asked;
  for (let second = 0; second < 120; second++) {
    watched.refusals++;
    await watched.clock.advance(1_000);
  }
  expect(watched.asked - before).toBe(2 * rightsOf(ROLE).length);
  await watched.end();
});

test('no response of the API server does not change anything', async () => {
  const watched = start(() => true);
  await watched.clock.advance(2_000);
  watched.away = true;
  await watched.clock.advance(60_000);
  expect(watched.impairments()).toHaveLength(1);
  watched.away = false;
  watched.refuses = () => false;
  await watched.clock.advance(10_000);
  expect(watched.impairments()).toEqual([]);
  await watched.end();
});
