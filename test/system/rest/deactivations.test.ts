import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/deadline.ts';
import type { Problem, Reply } from '../support/rest-client.ts';
import { PRODUCER } from '../support/small-world.ts';
import { apply, integration, kubectl } from '../support/world.ts';
import { type ActivationWorld, fromGit, openActivationWorld, ownName } from './support/activation-world.ts';

let world: ActivationWorld;
let { applyAs, arrived, attempted, close, field, open, passes, read, awaitMarker, send, wantedOf } =
  {} as ActivationWorld;

beforeAll(async () => {
  world = await openActivationWorld();
  ({ applyAs, arrived, attempted, close, field, open, passes, read, awaitMarker, send, wantedOf } = world);
});
afterAll(() => world?.stop());

describe('with objects in Git', () => {
  test('a revoked Activation in Git keeps the gate closed, and the response contains its name', async () => {
    await applyAs('argocd', fromGit('no-store-6', 'store-6', { revoked: true }));
    for (let n = 0; n < 3; n++) {
      const refused = await open('store-6');
      expect([refused.status, refused.body.code]).toEqual([409, 'revoked_elsewhere']);
      expect(refused.body.detail).toContain('no-store-6');
    }
    expect(await passes('store-6')).toBe(false);
    expect(await read('store-6')).toMatchObject({
      status: 'Revoked',
      effective: false,
      objects: [ownName('store-6'), 'no-store-6'].toSorted(),
    });
    await kubectl(world.facade.installation.cluster, ['delete', 'activation/no-store-6', '-n', PRODUCER]);
    // The call returns immediately, although the controller's status is outdated.
    expect((await open('store-6')).status).toBe(200);
    await arrived(await send('store-6.open', 'store-6'));
  });

  test('REST closes a gate that Git opens, and Git does not open it again', async () => {
    const manifest = fromGit('yes-store-7', 'store-7');
    await applyAs('argocd', manifest);
    await world.small.observer.until(['Activation', 'yes-store-7', PRODUCER, 'Effective', 'True/Routing']);
    await arrived(await send('store-7.git', 'store-7'));
    await eventually('the facade has received the change', async () => (await read('store-7')).effective);
    expect((await close('store-7')).status).toBe(204);
    expect(await passes('store-7')).toBe(false);
    await applyAs('argocd', manifest);
    expect(await passes('store-7')).toBe(false);
    expect(await field(ownName('store-7'), '{.spec.revoked}')).toBe('true');
    expect((await open('store-7')).status).toBe(200);
    await arrived(await send('store-7.open', 'store-7'));
  });

  test('closes and opens an Activation of REST that was exported to Git', async () => {
    expect((await open('store-8')).status).toBe(200);
    await applyAs('argocd', fromGit(ownName('store-8'), 'store-8'));
    expect((await close('store-8')).status).toBe(204);
    await applyAs('argocd', fromGit(ownName('store-8'), 'store-8'));
    expect(await passes('store-8')).toBe(false);
    expect((await open('store-8')).status).toBe(200);
    await applyAs('argocd', { ...fromGit(ownName('store-8'), 'store-8', { revoked: true }) });
    const refused = await open('store-8');
    expect([refused.status, refused.body.code]).toEqual([409, 'field_managed']);
    expect(refused.body.errors).toEqual([{ pointer: '/spec/revoked', detail: 'spec.revoked is managed by argocd' }]);
    expect((await close('store-8')).status).toBe(204);
  });

  test('a group key that was just deleted with kubectl is closed when deactivating returns', async () => {
    for (let n = 0; n < 10; n++) {
      const key = `store-9-${n}`;
      await world.small.observer.apply(fromGit(key, key));
      await world.small.observer.until(['Activation', key, PRODUCER, 'Effective', 'True/Routing']);
      await world.small.observer.remove('Activation', key, PRODUCER);
      expect((await close(key)).status).toBe(204);
      const id = await send(`deleted.${n}`, key);
      await awaitMarker();
      expect(attempted(id)).toBe(false);
    }
  });
});

describe('deactivating', () => {
  const activations = async () =>
    (await kubectl(world.facade.installation.cluster, ['get', 'activations', '-A', '-o', 'name'])).split('\n').length;

  test('returns 204 for a missing activation without writing anything', async () => {
    const before = await activations();
    const none = `int_${'0'.repeat(20)}`;
    for (let n = 0; n < 3; n++) {
      expect((await close('never')).status).toBe(204);
      expect(
        (await world.owner.remove('/waas/activations', { ...wantedOf('never'), integrationPublicId: none })).status,
      ).toBe(204);
    }
    expect(await activations()).toBe(before);
  });

  test('also closes the gate of a deleted integration, and does not write anything when repeated', async () => {
    await apply(world.facade.installation.cluster, [integration(PRODUCER, 'gone', { workspace: 'bob' })]);
    const isOpened = async () => (await open('store-10', 'gone')).status === 200;
    await eventually('the cache contains the integration', isOpened);
    await kubectl(world.facade.installation.cluster, ['delete', 'integration/gone', '-n', PRODUCER]);
    await eventually('the integration is not in the cache', async () => (await open('never', 'gone')).status === 404);
    expect((await close('store-10', 'gone')).status).toBe(204);
    expect(await field(ownName('store-10', 'gone'), '{.spec.revoked}')).toBe('true');
    const version = await field(ownName('store-10', 'gone'), '{.metadata.resourceVersion}');
    for (let n = 0; n < 3; n++) expect((await close('store-10', 'gone')).status).toBe(204);
    expect(await field(ownName('store-10', 'gone'), '{.metadata.resourceVersion}')).toBe(version);
    // If the integration was restored, the gate would be closed.
    await apply(world.facade.installation.cluster, [integration(PRODUCER, 'gone', { workspace: 'bob' })]);
    const name = ownName('store-10', 'gone');
    await world.small.observer.until(['Activation', name, PRODUCER, 'Effective', 'False/Revoked']);
  });

  test('using POST has the same result each time, and only accepts fields in the body', async () => {
    const revoke = (fields?: object, query = '') => world.owner.post(`/waas/activations/revoke${query}`, fields);
    const wanted = wantedOf('store-13');
    expect((await open('store-13')).status).toBe(200);
    await arrived(await send('store-13.open', 'store-13'));
    for (let n = 0; n < 3; n++) {
      const { status, body } = await revoke(wanted);
      expect([status, body]).toEqual([204, undefined]);
      expect(await passes('store-13')).toBe(false);
    }
    expect(await read('store-13')).toMatchObject({ status: 'Revoked' });
    const before = await activations();
    const none = `int_${'0'.repeat(20)}`;
    for (const never of [wantedOf('never'), { ...wanted, integrationPublicId: none }]) {
      expect((await revoke(never)).status).toBe(204);
    }
    expect(await activations()).toBe(before);
    const { groupKey: _gone, ...lacking } = wanted;
    const refused = [
      await revoke(lacking),
      await revoke(),
      await revoke({ ...wanted, colour: 'red' }),
      await revoke(wanted, '?groupKey=store-13'),
      await revoke(undefined, `?${new URLSearchParams(wanted)}`),
    ];
    expect(refused.map(({ status }) => status)).toEqual([422, 422, 422, 422, 422]);
    const foreign = await revoke({ ...wanted, producerTenantPublicId: world.other });
    expect(foreign.status).toBe(403);
    expect((await open('store-13')).status).toBe(200);
    await arrived(await send('store-13.again', 'store-13'));
  });

  test('accepts fields in the body, as query parameters, or in both if they are equal', async () => {
    const query = (fields: Record<string, string>) => `/waas/activations?${new URLSearchParams(fields)}`;
    const wanted = wantedOf('store-11');
    const { groupKey: _gone, ...lacking } = wanted;
    const cases: [expected: [number, string | undefined], reply: Promise<Reply>][] = [
      [[204, undefined], world.owner.remove(query(wanted))],
      [[204, undefined], world.owner.remove(query(wanted), wanted)],
      [[204, undefined], world.owner.remove(query({ groupKey: 'store-11' }), wanted)],
      [[400, 'ambiguous_request'], world.owner.remove(query({ ...wanted, groupKey: 'store-12' }), wanted)],
      [
        [400, 'ambiguous_request'],
        world.owner.remove(query({ ...wanted, producerTenantPublicId: world.other }), wanted),
      ],
      [[422, 'invalid_request'], world.owner.remove('/waas/activations')],
      [[422, 'invalid_request'], world.owner.remove('/waas/activations', lacking)],
      [[422, 'invalid_request'], world.owner.remove(query(lacking))],
      [[422, 'invalid_request'], world.owner.remove(query({ ...wanted, colour: 'red' }))],
    ];
    const reported = await Promise.all(
      cases.map(async ([, reply]) => {
        const { status, body } = (await reply) as Problem;
        return [status, body?.code];
      }),
    );
    expect(reported).toEqual(cases.map(([expected]) => expected));
  });
});
