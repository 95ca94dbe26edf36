import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { packSystem } from '../tools/image/layers.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

test('the layer of the system is kept in the folder that docs/image.md names', async () => {
  const [root, cache] = await Promise.all([temporaryFolder('layer'), temporaryFolder('cache')]);
  vi.stubEnv('XDG_CACHE_HOME', cache.path);
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await Promise.all([root.remove(), cache.remove()]);
  });
  await writeFile(join(root.path, 'file'), 'text');
  const { file } = await packSystem(root.path);
  expect(dirname(file)).toBe(join(cache.path, 'sluice', 'image'));
});
