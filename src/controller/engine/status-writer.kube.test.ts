import { describe, expect, it } from 'vitest';
import { useNamespace } from '../../../test/support/kubernetes/namespace.ts';
import type { ObjectOf } from '../../api/kinds/kinds.ts';
import { resourceOf } from '../../kube/resource.ts';
import { createStatusWriter } from './status-writer.ts';

type Package = ObjectOf<'Package'>;

const PACKAGES = resourceOf('Package');
const READY = { type: 'Ready', status: 'True', reason: 'Compiled', message: 'compiled' } as const;
const { client, namespace } = useNamespace('status-writer');

const create = (name: string) =>
  client.apply<Package>(PACKAGES, { namespace, name }, { spec: { streams: [] } }, { fieldManager: 'kubectl' });
const statusOf = async (name: string) => (await client.get<Package>(PACKAGES, { namespace, name }))?.status;
const writerOf = (apply = client.apply) =>
  createStatusWriter<Package['spec'], NonNullable<Package['status']>>({
    client: { apply, mergePatch: client.mergePatch },
    resource: PACKAGES,
    wallMs: () => 0,
  });

describe('a status writer with a real API server', () => {
  it('does not remove conditions that another manager adds at the same time', async () => {
    const object = await create('silver');
    const name = { namespace, name: 'silver' };
    const condition = { ...READY, lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1 };
    const theirs = { ...condition, type: 'Backup' };
    // A status that was restored from a backup makes the writer remove a condition.
    const restored = { status: { conditions: [{ ...condition, type: 'Stalled' }] } };
    await client.mergePatch(PACKAGES, name, restored, { subresource: 'status' });
    const apply = (async (...parameters: Parameters<typeof client.apply>) => {
      const applied = await client.apply(...parameters);
      const more = { status: { conditions: [theirs] } };
      await client.apply(PACKAGES, name, more, { fieldManager: 'backup', subresource: 'status' });
      return applied;
    }) as typeof client.apply;
    await expect(writerOf(apply).write(object, { streamCount: 0 }, [READY])).rejects.toMatchObject({ status: 409 });
    await writerOf().write(object, { streamCount: 0 }, [READY]);
    const types = (await statusOf('silver'))?.conditions?.map(({ type }) => type);
    expect(types?.toSorted()).toEqual(['Backup', 'Ready']);
  });
});
