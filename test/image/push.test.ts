import { execFile } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { openHelm, outputOf, ROOT } from '../chart/support/helm.ts';
import { pushAll, pushCommands } from '../support/registry/push.ts';
import { type Registry, registryRefusal, startRegistry } from '../support/registry/registry.ts';
import { describeImage, openLayout } from './image.ts';

const run = promisify(execFile);

const refusal = await registryRefusal();
if (refusal !== undefined) console.warn(`SKIPPED: pushing the images and the chart; ${refusal}`);

describeImage(([one]) => {
  const title = refusal === undefined ? 'is pushed with the commands of docs/image.md' : `is NOT PUSHED: ${refusal}`;
  describe.skipIf(refusal !== undefined)(`${title}`, () => {
    let registry: Registry;

    beforeAll(async () => {
      registry = await startRegistry();
      await cp(join(ROOT, 'charts'), join(one.folder, 'charts'), { recursive: true });
      await pushAll(one.folder, registry);
    });
    afterAll(() => registry?.stop());

    test('the page has commands for the images and for the chart', async () => {
      expect(await pushCommands()).toHaveLength(2);
    });

    test.each([
      ['sluice', 'image'],
      ['sluice-redis', 'redis-image'],
    ])('%s has the digest of the layout', async (repository, layout) => {
      const image = `docker://${registry.host}/${repository}:${packageJson.version}`;
      const env = { ...process.env, ...registry.env };
      const { stdout } = await run('skopeo', ['inspect', '--raw', image], { env, encoding: 'buffer' });
      const [index] = openLayout(one, layout).entries;
      expect(stdout.equals(openLayout(one, layout).read(index as never))).toBe(true);
    });

    test('the chart can be pulled', async () => {
      const helm = await openHelm();
      const from = `oci://${registry.host}/charts/sluice`;
      const show = ['show', 'chart', from, `--version=${packageJson.version}`, `--ca-file=${registry.ca}`];
      const shown = outputOf(await helm(show));
      expect(shown).toContain(`appVersion: ${packageJson.version}`);
    });
  });
});
