import { describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import type { SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import { keyRingOf } from '../../../core/delivery/key-ring.ts';
import type { AnyObject } from '../../../kube/object.ts';
import type { Context } from '../../context/context.ts';
import { reconcileSubscription } from './reconcile.ts';
import { ensureSalt } from './salt.ts';

const subscription = (status?: SubscriptionStatus, endpoint: object = { endpoint: { url: 'https://example.com' } }) =>
  objectOf<'Subscription'>(
    'acme-orders',
    {
      producer: 'acme',
      integration: 'globex',
      stream: 'orders',
      ordering: 'ByGroupKey',
      deletionPolicy: 'Retain',
      ...endpoint,
    },
    { namespace: 'globex', ...(status === undefined ? {} : { status }) },
  );

const keys = keyRingOf(Buffer.alloc(32, 7));

/** A client that records statuses. Each status must use the version that was read. */
function clientOf(writes: { metadata: AnyObject['metadata']; status: SubscriptionStatus }[]): Context['client'] {
  return {
    apply: async (_resource: object, _name: object, body: (typeof writes)[number]) => {
      if (body.status !== undefined) writes.push(body);
      return { metadata: { ...body.metadata, resourceVersion: '2' }, status: body.status };
    },
  } as unknown as Context['client'];
}

describe('the salt', () => {
  test('is random, and is written for the version that was read, along with the rest of the status', async () => {
    const writes: Parameters<typeof clientOf>[0] = [];
    const before = subscription({ admittedAt: '2026-01-01T00:00:00Z', signing: { version: 3 } });
    const results = [await ensureSalt({ client: clientOf(writes), keys }, before)];
    results.push(await ensureSalt({ client: clientOf(writes), keys }, before));
    for (const { metadata, status } of writes) {
      expect(metadata).toEqual({ uid: 'uid-acme-orders', resourceVersion: '1' });
      expect(status).toMatchObject({
        admittedAt: '2026-01-01T00:00:00Z',
        signing: { version: 3, key: keys.first().id },
      });
      expect(status.signing?.salt).toMatch(/^[A-Za-z0-9_-]{22}$/);
    }
    expect(new Set(writes.map(({ status }) => status.signing?.salt)).size).toBe(2);
    expect(results[0]).toMatchObject({
      salt: writes[0]?.status.signing?.salt,
      subscription: { metadata: { resourceVersion: '2' }, status: writes[0]?.status },
    });
  });

  test.each([
    ['has one', subscription({ signing: { salt: 'a-salt' } })],
    ['has no endpoint', subscription({}, {})],
  ])('is not written if the Subscription %s', async (_what, object) => {
    const writes: Parameters<typeof clientOf>[0] = [];
    expect(await ensureSalt({ client: clientOf(writes), keys }, object)).toEqual({
      subscription: object,
      salt: object.status?.signing?.salt,
    });
    expect(writes).toEqual([]);
  });

  test('is part of the status before the routes are applied, and does not change', async () => {
    const { context, inForce, statuses } = createTestContext({});
    let written = -1;
    const tenants = {
      ...context.tenants,
      inForce: async (...asked: Parameters<Context['tenants']['inForce']>) => {
        written = statuses.length;
        return context.tenants.inForce(...asked);
      },
    };
    const { status } = await reconcileSubscription({ ...context, tenants })(subscription());
    expect(inForce).toEqual(['acme acme-orders']);
    expect(written).toBe(1);
    expect(status?.signing).toMatchObject({ salt: expect.stringMatching(/^.{22}$/), version: 1 });
  });
});
