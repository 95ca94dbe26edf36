import { access } from 'node:fs/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { takePlace } from '../support/node-cluster/remains.ts';
import { nodeRefusal } from '../support/node-cluster/requirements.ts';

describe.skipIf(nodeRefusal() !== undefined)('the folder of a node', () => {
  test('belongs to one node at a time', async () => {
    const [first, second] = await Promise.all([takePlace(), takePlace()]);
    onTestFinished(first.sweep);
    onTestFinished(second.sweep);
    expect(first.number).not.toBe(second.number);
  });

  test('is only removed once because another node may use it later', async () => {
    const first = await takePlace();
    await first.sweep();
    const second = await takePlace();
    onTestFinished(second.sweep);
    expect(second.folder).toBe(first.folder);
    await first.sweep();
    await access(second.folder);
  });
});
