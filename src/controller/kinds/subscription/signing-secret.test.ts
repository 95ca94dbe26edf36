import { describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import { errorFromStatus } from '../../../kube/kube-error.ts';
import type { Store } from '../../../kube/store.ts';
import type { Context } from '../../context/context.ts';
import { reconcileSubscription } from './reconcile.ts';

const subscription = objectOf<'Subscription'>(
  'acme-orders',
  {
    producer: 'acme',
    integration: 'globex',
    stream: 'orders',
    ordering: 'ByGroupKey',
    deletionPolicy: 'Retain',
    endpoint: { url: 'https://example.com/hook' },
  },
  { namespace: 'globex', status: { signing: { salt: 'a-salt' } } },
);

/** Reconciles with an API server that responds to the Secret with `status` and contains `existing`. */
async function reconcile(status: number, reason: string, message: string, existing?: object) {
  const { context } = createTestContext({});
  const body = { kind: 'Status', reason, message };
  const client = {
    apply: () => Promise.reject(errorFromStatus('PATCH /secrets', status, body)),
    get: () => (existing instanceof Error ? Promise.reject(existing) : Promise.resolve(existing)),
  };
  return reconcileSubscription({ ...context, client: client as unknown as Context['client'] })(subscription);
}

async function mirrored(...answer: Parameters<typeof reconcile>) {
  const { conditions, events, requeueAfterMs } = await reconcile(...answer);
  const fault = conditions.find(({ type }) => type === 'SecretMirrored');
  expect(conditions.some(({ type, status }) => type === 'Ready' && status === 'False')).toBe(false);
  expect(events?.map(event => event.reason)).toEqual([fault?.reason]);
  expect(requeueAfterMs).toBe(300_000);
  return fault;
}

describe('a signing secret that cannot be mirrored', () => {
  test('reports that a Secret of another type has the same name', async () => {
    const answer = [422, 'Invalid', 'type: Invalid value: "sluice.dev/signing-secret"'] as const;
    expect(await mirrored(...answer, { metadata: {}, type: 'Opaque', data: { key: 'c2VjcmV0' } })).toEqual({
      type: 'SecretMirrored',
      status: 'False',
      reason: 'NameTaken',
      message:
        'a Secret acme-orders-signing of type Opaque already exists. Delete or rename it so that the controller can write the signing secret',
    });
  });

  test.each([
    ['a quota that is spent', 403, 'Forbidden', 'exceeded quota: secrets=10', 'exceeded quota: secrets=10'],
    ['a policy', 422, 'Invalid', 'value c2VjcmV0 is not allowed', '422 Invalid'],
  ])('reports that the API server has refused it: %s', async (_what, status, reason, message, shown) => {
    const fault = await mirrored(status, reason, message);
    expect(fault).toMatchObject({ status: 'False', reason: 'Refused' });
    expect(fault?.message).toContain(shown);
    expect(fault?.message).not.toContain('c2VjcmV0');
  });

  test('reports that the controller may neither write nor read Secrets in this namespace', async () => {
    const message = 'User "sluice" cannot patch resource "secrets" in the namespace "globex"';
    const unreadable = errorFromStatus('GET /secrets', 403, { kind: 'Status', reason: 'Forbidden', message: 'no' });
    expect(await mirrored(403, 'Forbidden', message, unreadable)).toMatchObject({
      reason: 'Refused',
      message: `the controller is not allowed to read or write the Secret acme-orders-signing: PATCH /secrets: 403 Forbidden: ${message}`,
    });
    const broken = errorFromStatus('GET /secrets', 500, { kind: 'Status', reason: 'InternalError', message: 'no' });
    await expect(reconcile(403, 'Forbidden', message, broken)).rejects.toThrow('GET /secrets: 500');
  });

  test.each([0, 429, 500, 503])('is a failure that is retried if the API server responds with %i', async status => {
    await expect(reconcile(status, 'Whatever', 'later')).rejects.toThrow('Whatever');
  });
});

test('a signing secret is only written if it has changed, or belongs to another Subscription', async () => {
  const written: object[] = [];
  const mirrored = async (mirror?: object) => {
    const { context } = createTestContext({});
    if (mirror !== undefined)
      (context.caches.signingSecrets.store as Store<object>).set('globex/acme-orders-signing', mirror);
    const apply = async (_resource: object, _name: object, secret: object) => void written.push(secret);
    await reconcileSubscription({ ...context, client: { apply } as unknown as Context['client'] })(subscription);
  };
  await mirrored();
  const [secret] = written as { data: object }[];
  const [data] = Object.values(secret?.data ?? {});
  await mirrored({ namespace: 'globex', data, owner: 'acme-orders' });
  expect(written).toHaveLength(1);
  await mirrored({ namespace: 'globex', data: 'b2xk', owner: 'acme-orders' });
  await mirrored({ namespace: 'globex', data, owner: 'other' });
  expect(written).toEqual([secret, secret, secret]);
});
