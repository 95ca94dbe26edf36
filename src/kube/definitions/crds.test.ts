import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { KINDS } from '../../api/kinds/kinds.ts';
import { createLogger } from '../../telemetry/log.ts';
import type { KubeClient } from '../client.ts';
import { KubeError } from '../kube-error.ts';
import { createCrdGate, describeCrd, type LiveCrd, lackOf } from './crds.ts';

// biome-ignore lint/suspicious/noExplicitAny: the tests change any part of a schema.
type Any = any;

/** Returns a CustomResourceDefinition from a different version. */
function another(change: (schema: Any, version: Any) => void = () => {}): LiveCrd {
  const crd = structuredClone(describeCrd(KINDS.CatalogStream)) as Any;
  crd.metadata.annotations = { 'sluice.dev/schema': 'another' };
  change(crd.spec.versions[0].schema.openAPIV3Schema.properties, crd.spec.versions[0]);
  return crd;
}

const lack = (crd: LiveCrd | undefined) => lackOf(crd, KINDS.CatalogStream);

test('the same CustomResourceDefinition has no missing fields, and is recognized by its annotation', () => {
  const same = describeCrd(KINDS.CatalogStream) as unknown as LiveCrd;
  expect(same.metadata.annotations?.['sluice.dev/schema']).toMatch(/^[0-9a-f]{16}$/);
  expect(lack(same)).toBeUndefined();
  expect(
    new Set(Object.values(KINDS).map(kind => describeCrd(kind).metadata.annotations['sluice.dev/schema'])).size,
  ).toBe(Object.keys(KINDS).length);
});

test('a newer one, or one without the annotation that has all fields, has no missing fields', () => {
  expect(lack(another())).toBeUndefined();
  const newer = another(({ spec, status }) => {
    spec.properties.future = { type: 'string' };
    status.properties.conditions.items.properties.future = { type: 'string' };
    spec.description = 'Another sentence.';
  });
  expect(lack(newer)).toBeUndefined();
});

test('lists the missing fields of an older version', () => {
  expect(lack(another(({ status }) => delete status.properties.publicId))).toBe(
    'is older and does not contain status.publicId',
  );
  const inItems = another(({ status }) => delete status.properties.conditions.items.properties.reason);
  expect(lack(inItems)).toBe('is older and does not contain status.conditions[].reason');
  const inEnum = another(({ spec }) => spec.properties.deletionPolicy.enum.pop());
  expect(lack(inEnum)).toMatch(/^is older and does not contain spec\.deletionPolicy: \w+$/);
  expect(lack(another(properties => delete properties.status))).toBe('is older and does not contain status');
});

test('reports a missing CustomResourceDefinition, or one without this version', () => {
  expect(lack(undefined)).toBe('is missing');
  expect(lack(another((_schema, version) => Object.assign(version, { served: false })))).toBe(
    'does not serve the version v1alpha1',
  );
});

function startGate(answer: (name: string) => LiveCrd | undefined) {
  const state = { answer };
  const clock = createManualClock();
  const client = {
    server: 'https://10.0.0.1',
    get: async (_resource: unknown, { name }: { name: string }) => state.answer(name),
  } as unknown as Pick<KubeClient, 'get' | 'server'>;
  const gate = createCrdGate({ client, clock, log: createLogger({ level: 'silent' }) });
  const passed: boolean[] = [];
  const stop = new AbortController();
  void gate.pass(stop.signal).then(result => passed.push(result));
  return Object.assign(state, { clock, gate, passed, stop });
}

const current = (name: string) =>
  Object.values(KINDS)
    .map(kind => describeCrd(kind) as unknown as LiveCrd)
    .find(({ metadata }) => metadata.name === name);

test('waits while a CustomResourceDefinition is missing, and checks again', async () => {
  const gate = startGate(name => (name === 'blocks.sluice.dev' ? undefined : current(name)));
  await gate.clock.advance(30_000);
  expect(gate.passed).toEqual([]);
  expect(gate.gate.impairments()).toEqual([
    {
      reason: 'OutdatedCRDs',
      cause: 'settings',
      message:
        'CustomResourceDefinition blocks.sluice.dev is missing. To update it, run kubectl apply --server-side -f crds/ with the files of this version',
    },
  ]);
  gate.answer = current;
  await gate.clock.advance(10_000);
  expect([gate.passed, gate.gate.impairments()]).toEqual([[true], []]);
});

test('retries and reports why the API server does not respond, and ignores missing permissions', async () => {
  const failing = (status: number, cause?: Error) => () => {
    throw new KubeError({ call: 'GET /crd', status, reason: 'ConnectionFailed', cause });
  };
  const gate = startGate(failing(0, new Error('connect ECONNREFUSED 10.0.0.1:443')));
  await gate.clock.advance(5_000);
  expect([gate.passed, gate.gate.impairments()]).toEqual([
    [],
    [
      {
        reason: 'KubernetesUnavailable',
        cause: 'dependency',
        message:
          'The API server at https://10.0.0.1 does not respond or rejects the credentials: GET /crd: ConnectionFailed: connect ECONNREFUSED 10.0.0.1:443. Check KUBECONFIG, and the token and certificates of this role',
      },
    ],
  ]);
  gate.answer = failing(403);
  await gate.clock.advance(1_000);
  expect([gate.passed, gate.gate.impairments()]).toEqual([[true], []]);
});

test('does not report the output of an exec plugin', async () => {
  const cause = new Error('secret');
  const gate = startGate(() => {
    throw new KubeError({ call: 'GET /crd', status: 0, reason: 'CredentialsFailed', cause });
  });
  await gate.clock.advance(0);
  expect(gate.gate.impairments()[0]?.message).toContain('GET /crd: CredentialsFailed. ');
});

test('a stop ends the waiting', async () => {
  const gate = startGate(() => undefined);
  await gate.clock.advance(0);
  gate.stop.abort();
  await gate.clock.advance(0);
  expect(gate.passed).toEqual([false]);
});
