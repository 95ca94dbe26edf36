import { describe, expect, test } from 'vitest';
import { createTestContext } from '../../../../test/support/controller/test-context.ts';
import { useNamespace } from '../../../../test/support/kubernetes/namespace.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { type AnyObject, keyOf } from '../../../kube/object.ts';
import { resourceOf } from '../../../kube/resource.ts';
import { createLogger } from '../../../telemetry/log.ts';
import type { Cached } from '../../caches/caches.ts';
import { pairSelection } from './pair-selection.ts';
import { KEEP_REVOKED_MS, type OwnedActivation, removeRevoked, restName } from './removal.ts';

const ACTIVATIONS = resourceOf('Activation');
const { client, namespace } = useNamespace('removal');
const attempt = { failures: 0, signal: new AbortController().signal, log: createLogger({ level: 'silent' }) };
const nameOf = (groupKey: string) => restName({ namespace, integration: 'globex', groupKey });

function apply(
  groupKey: string,
  revoked: boolean,
  fieldManager: string = FIELD_MANAGER.facade,
  name = nameOf(groupKey),
) {
  const spec = { integration: 'globex', groupKey, revoked };
  return client.apply<Cached<'Activation'>>(ACTIVATIONS, { namespace, name }, { spec }, { fieldManager });
}

const tellStatus = (groupKey: string) =>
  client.apply(
    ACTIVATIONS,
    { namespace, name: nameOf(groupKey) },
    { status: { publicId: `act_${nameOf(groupKey).slice(4)}` } },
    { fieldManager: FIELD_MANAGER.controller, force: true, subresource: 'status' },
  );

const exists = async (groupKey: string) =>
  (await client.get(ACTIVATIONS, { namespace, name: nameOf(groupKey) })) !== undefined;

/** Returns the time of the last change by the facade, in milliseconds. */
function changedMs({ metadata }: AnyObject): number {
  const { managedFields = [] } = metadata as OwnedActivation['metadata'];
  return Date.parse(managedFields.find(({ manager }) => manager === FIELD_MANAGER.facade)?.time ?? '');
}

/** Runs a single pass at this time, with the objects of the API server in the cache. */
async function look(wallMs: number): Promise<void> {
  const { items } = await client.list(ACTIVATIONS, (object: Cached<'Activation'>) => object, { namespace });
  const { context } = createTestContext({ Activation: items });
  const turn = removeRevoked({
    caches: context.caches,
    readPair: async pair =>
      (await client.list(ACTIVATIONS, (object: OwnedActivation) => object, pairSelection(pair))).items,
    remove: client.remove,
    wallMs: () => wallMs,
  });
  await turn('all', attempt);
}

describe('an Activation that was revoked using REST', () => {
  test('is removed after 30 days, and other Activations are not', async () => {
    const awkward = 'a=b,c\\d/e';
    for (const groupKey of [awkward, 'open', 'in-git', 'sibling']) {
      await apply(groupKey, false);
      await apply(groupKey, groupKey !== 'open');
      await tellStatus(groupKey);
    }
    await apply('in-git', true, 'argocd');
    await apply('sibling', false, 'kubectl', 'by-hand');
    await look(Date.now() + KEEP_REVOKED_MS - 60_000);
    expect(await exists(awkward)).toBe(true);
    await look(Date.now() + KEEP_REVOKED_MS + 60_000);
    expect(await exists(awkward)).toBe(false);
    for (const groupKey of ['open', 'in-git', 'sibling']) expect(await exists(groupKey), groupKey).toBe(true);
  });

  test('is removed based on the time when it was revoked, and not when it was created', async () => {
    const madeMs = changedMs(await apply('late', false));
    await tellStatus('late');
    // Field manager times are in whole seconds, so wait until the next second.
    let revokedMs = madeMs;
    for (let revoked = true; revokedMs === madeMs || revoked; revoked = !revoked) {
      revokedMs = changedMs(await apply('late', revoked));
    }
    await look(madeMs + KEEP_REVOKED_MS);
    expect(await exists('late')).toBe(true);
    await look(revokedMs + KEEP_REVOKED_MS);
    expect(await exists('late')).toBe(false);
  });

  test('is kept if it is activated again before the removal', async () => {
    await apply('raced', true);
    const { items } = await client.list(ACTIVATIONS, (object: Cached<'Activation'>) => object, { namespace });
    const { context } = createTestContext({ Activation: items.filter(({ spec }) => spec.groupKey === 'raced') });
    const turn = removeRevoked({
      caches: context.caches,
      readPair: async pair => {
        const before = await client.list(ACTIVATIONS, (object: OwnedActivation) => object, pairSelection(pair));
        await apply('raced', false);
        return before.items;
      },
      remove: client.remove,
      wallMs: () => Date.now() + 2 * KEEP_REVOKED_MS,
    });
    await turn('all', attempt);
    const object = await client.get<Cached<'Activation'>>(ACTIVATIONS, { namespace, name: nameOf('raced') });
    expect(object && keyOf(object.metadata)).toBe(`${namespace}/${nameOf('raced')}`);
    expect(object?.spec.revoked).toBe(false);
  });
});
