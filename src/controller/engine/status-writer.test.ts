import { describe, expect, it } from 'vitest';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/object.ts';
import { type CommonStatus, createStatusWriter } from './status-writer.ts';

type Thing = KubeObject<object, CommonStatus>;
const READY = { type: 'Ready', status: 'True', reason: 'Done', message: 'done' } as const;

function thing(resourceVersion: string): Thing {
  return { metadata: { name: 'a', namespace: 'ns', uid: 'uid-a', resourceVersion, generation: 1 }, spec: {} };
}

/** A writer with an API server that responds to each write with the next version of `answers`. */
function createWriter(answers: string[], kind = 'Thing') {
  const client = {
    apply: async (_resource: object, _name: object, { status }: { status: CommonStatus }) => ({
      ...thing(answers.shift() ?? '0'),
      status,
    }),
  } as unknown as Pick<KubeClient, 'apply' | 'mergePatch'>;
  return createStatusWriter<object, CommonStatus>({
    client,
    resource: { group: 'x', version: 'v1', kind, plural: 'things', namespaced: true },
    wallMs: () => 0,
  });
}

describe('status writer', () => {
  it('writes again if a restored server has lost the write, even if its versions are older', async () => {
    const writer = createWriter(['105', '99']);
    const cached = thing('100');
    expect(await writer.write(cached, {}, [READY])).toBe(true);
    expect(await writer.write(cached, {}, [READY])).toBe(false);
    const restored = thing('98');
    expect(writer.takeEcho(cached, restored)).toBe(false);
    expect(writer.latest(restored).status).toBeUndefined();
    expect(await writer.write(restored, {}, [READY])).toBe(true);
  });

  it('does not write conditions of other managers, even if they are carried over', async () => {
    const at = { observedGeneration: 1, lastTransitionTime: '2026-01-01T00:00:00Z' };
    const theirs = { type: 'Backup', status: 'True', reason: 'Done', message: 'done', ...at } as const;
    const writer = createWriter(['105'], 'Block');
    const cached = { ...thing('100'), status: { conditions: [theirs] } };
    expect(await writer.write(cached, {}, [READY, theirs])).toBe(true);
    expect(writer.latest(cached).status?.conditions?.map(({ type }) => type)).toEqual(['Ready']);
  });

  it('accepts the same version again from a restored server, but ignores its own writes', async () => {
    const writer = createWriter(['105', '106']);
    const cached = thing('100');
    await writer.write(cached, {}, [READY]);
    expect(writer.takeEcho(cached, cached)).toBe(false);
    expect(await writer.write(cached, {}, [READY])).toBe(true);
  });
});
