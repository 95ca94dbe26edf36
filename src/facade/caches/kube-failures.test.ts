import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { formatKubeconfig } from '../../../test/support/kubernetes/credentials.ts';
import { connect } from '../../kube/client.ts';
import { errorFromStatus } from '../../kube/kube-error.ts';
import { createLogger } from '../../telemetry/log.ts';
import { systemClock } from '../../time/clock.ts';
import { createResourceWriter } from '../objects/resource-writer.ts';
import { createCaches } from './caches.ts';
import { kubeRefusal } from './kube-failures.ts';
import { createLiveLists } from './live-lists.ts';

const answer = (status: number, reason: string, message: string, causes: object[] = []) =>
  kubeRefusal(errorFromStatus('PATCH /x', status, { kind: 'Status', reason, message, details: { causes } }));
const STREAM = 'catalogstreams.sluice.dev "orders" is forbidden';

test.each([
  [
    403,
    'Forbidden',
    `${STREAM}: exceeded quota: few, requested: count/catalogstreams.sluice.dev=1, used: 1, limited: 1`,
  ],
  [403, 'Forbidden', `${STREAM}: ValidatingAdmissionPolicy 'names' with binding 'names' denied request: no such names`],
  [422, 'Invalid', `${STREAM}: ValidatingAdmissionPolicy 'names' with binding 'names' denied request: no such names`],
  [400, 'BadRequest', 'admission webhook "names.example.com" denied the request: no such names'],
  [403, 'Forbidden', `${STREAM}: some plugin of the cluster says no`],
])('%i %s of a policy results in its message, as permanent: %s', (status, reason, message) => {
  const { code, facts } = answer(status, reason, message, [{ message }]);
  expect({ code, detail: facts.detail }).toEqual({
    code: 'refused_by_policy',
    detail: expect.stringContaining(message),
  });
});

test('a missing permission of the facade requires the operator, and the response does not contain an account', () => {
  const message = `${STREAM}: User "system:serviceaccount:a:b" cannot patch resource "catalogstreams" in API group "sluice.dev"`;
  const { code, facts } = answer(403, 'Forbidden', message);
  expect({ code, detail: facts.detail }).toEqual({ code: 'missing_permission', detail: undefined });
});

test.each([
  [404, 'NotFound', 'namespaces "shop" not found', []],
  [
    403,
    'Forbidden',
    `${STREAM}: unable to create new content in namespace shop because it is being terminated`,
    [{ reason: 'NamespaceTerminating', message: 'namespace shop is being terminated', field: 'metadata.namespace' }],
  ],
  [500, 'InternalError', 'etcdserver: request timed out', []],
])('%i %s can be repeated: %s', (status, reason, message, causes) => {
  expect(answer(status, reason, message, causes).code).toBe('unavailable');
});

test('a rule of the kind is a fault of the request, even if its message is about quotas', () => {
  const causes = [
    { reason: 'FieldValueInvalid', field: 'spec.name', message: 'Invalid value: has exceeded the quota' },
  ];
  expect(answer(422, 'Invalid', 'CatalogStream "x" is invalid: spec.name: too long', causes).code).toBe(
    'invalid_request',
  );
});

test.each([400, 422])('a %i is a fault of the request, with a pointer to each field', status => {
  const causes = [{ reason: 'FieldValueInvalid', field: 'spec.eventTypes[2]', message: 'is not valid' }];
  const { code, facts } = answer(status, 'Invalid', 'CatalogStream "x" is invalid', causes);
  expect([code, facts.errors]).toEqual([
    'invalid_request',
    [{ pointer: '/spec/eventTypes/2', detail: 'is not valid' }],
  ]);
});

test('a call that the API server asks to repeat too late fails at once, with the reason', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-facade-'));
  const server = createServer((_request, response) => response.writeHead(503, { 'retry-after': '5' }).end('{}'));
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const kubeconfig = join(folder, 'kubeconfig');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await writeFile(kubeconfig, formatKubeconfig({ cluster: { server: url, 'insecure-skip-tls-verify': true } }));
  const client = connect({ kubeconfig, clock: systemClock });
  onTestFinished(async () => {
    await client.close();
    await new Promise(resolve => server.close(resolve));
    await rm(folder, { recursive: true });
  });
  const log = createLogger({ level: 'silent' });
  const caches = createCaches(client, systemClock, log);
  const limits = { create: (_kind: unknown, _name: unknown, create: () => Promise<unknown>) => create() };
  const writer = createResourceWriter({ client, caches, clock: systemClock, limits: limits as never });
  const calls = [
    caches.live('Workspace', { name: 'shop' }),
    caches.findBy('Integration', 'tokenHash', 'x'),
    createLiveLists({ client, keep: object => object })('Package', 'shop'),
    writer.remove('Package', { metadata: { namespace: 'shop', name: 'all', uid: 'u', resourceVersion: '1' } } as never),
  ];
  for (const result of await Promise.allSettled(calls)) {
    expect(result).toMatchObject({ status: 'rejected', reason: { code: 'unavailable', cause: { status: 503 } } });
  }
});
