import { describe, expect, test } from 'vitest';
import { describeNothing, type HeldObject, planUninstall, undeliveredByStatus } from './uninstall-plan.ts';

const meta = (namespace: string, name: string) => ({ namespace, name, uid: name, resourceVersion: '1' });

function subscription(stream: string, backlog: string | undefined): HeldObject {
  const spec = { producer: 'shop', stream };
  const status = backlog === undefined ? {} : { delivery: { backlog } };
  return { kind: 'Subscription', metadata: meta('ada', `shop-${stream}`), spec, status };
}

function stream(name: string, reason: string): HeldObject {
  return { kind: 'CatalogStream', metadata: meta('shop', name), status: { conditions: [{ type: 'Ready', reason }] } };
}

describe('statuses contain the streams with undelivered events', () => {
  test.each([
    ['of a subscription with a backlog', subscription('orders', '10+'), ['shop/orders']],
    ['of one whose backlog is empty', subscription('orders', '0'), []],
    ['of one without a delivery yet', subscription('orders', undefined), []],
    ['that are draining', stream('orders', 'Draining'), ['shop/orders']],
    ['that are ready', stream('orders', 'QueueReady'), []],
  ])('%s', (_, object, streams) => {
    expect(undeliveredByStatus([object])).toEqual(streams);
  });

  test('once each, sorted', () => {
    const objects = [stream('orders', 'Draining'), subscription('orders', '1+'), subscription('invoices', '1+')];
    expect(undeliveredByStatus(objects)).toEqual(['shop/invoices', 'shop/orders']);
  });
});

describe('without a finalizer to remove', () => {
  const nothing = (name: string) =>
    `There are no custom resources of ${name} with a Sluice finalizer. There is nothing to do.`;

  test('there is nothing to do', () => {
    expect(describeNothing('', new Map())).toEqual([nothing('the installation without a name')]);
  });

  test('installations with finalizers are listed, with the variables to set', () => {
    const held = new Map([
      ['green', [1]],
      ['blue', [1, 2]],
    ]);
    const after = 'and set SLUICE_NAMESPACE to the namespace of its controller.';
    expect(describeNothing('', held)).toEqual([
      nothing('the installation without a name'),
      `Custom resources of the installation blue with a finalizer: 2. To remove these finalizers, set SLUICE_INSTANCE=blue, ${after}`,
      `Custom resources of the installation green with a finalizer: 1. To remove these finalizers, set SLUICE_INSTANCE=green, ${after}`,
    ]);
    expect(describeNothing('red', new Map([['', [1]]]))).toEqual([
      nothing('the installation red'),
      `Custom resources of the installation without a name with a finalizer: 1. To remove these finalizers, unset SLUICE_INSTANCE, ${after}`,
    ]);
  });
});

describe('removing the finalizers', () => {
  const held = [stream('orders', 'QueueReady')];
  test.each([
    [[], false, true],
    [['shop/orders'], false, false],
    [['shop/orders'], true, true],
  ])('with undelivered events of %j, ignoring them: %s → %s', (streams, ignores, proceeds) => {
    expect(planUninstall(held, { streams }, ignores).proceeds).toBe(proceeds);
  });

  test('shows the streams first, and then what to do', () => {
    const { lines } = planUninstall(held, { streams: ['shop/invoices', 'shop/orders'] }, false);
    expect(lines.slice(0, 2)).toEqual([
      'Custom resources with a finalizer of Sluice: 1',
      'Streams with undelivered events: 2: shop/invoices, shop/orders',
    ]);
    expect(lines.at(-1)).toMatch(
      /^No changes were made.*sluice uninstall --ignore-undelivered in a pod of the controller/,
    );
  });

  test('lists at most ten streams', () => {
    const streams = Array.from({ length: 12 }, (_, i) => `shop/${i}`);
    expect(planUninstall(held, { streams }, true).lines.at(-1)).toMatch(/^Streams.*: 12: .*shop\/9 and 2 more$/);
  });

  test('explains the source of the streams if Redis is not available', () => {
    const { lines } = planUninstall(held, { streams: [], redisProblem: 'Redis does not answer.' }, false);
    expect(lines[1]).toMatch(/from the statuses.*Redis does not answer\.$/);
  });
});
