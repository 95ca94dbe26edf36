import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import packageJson from '../../../package.json' with { type: 'json' };
import { ensureBinaries } from '../kubernetes/binaries.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { readExamples } from '../tour/readme.ts';
import type { Registry } from './registry.ts';

const PAGE = join(import.meta.dirname, '..', '..', '..', 'docs', 'image.md');

/** Returns the commands of docs/image.md for pushing both images and the chart. */
export async function pushCommands(): Promise<string[]> {
  const [, section = ''] = (await readFile(PAGE, 'utf8')).split('\n## Push the images\n');
  const examples = readExamples(section.split('\n## ')[0] ?? '');
  return examples.map(({ commands }) => commands).filter(commands => /^(skopeo|helm) /.test(commands));
}

/**
 * Runs the commands of docs/image.md that push both images and the chart.
 * @param folder contains `dist` with the layouts, and `charts`
 * @throws with standard error if a command fails
 */
export async function pushAll(folder: string, registry: Registry): Promise<void> {
  const [{ helm }, home] = await Promise.all([ensureBinaries(['helm']), temporaryFolder('push')]);
  const env = {
    ...process.env,
    ...registry.env,
    PATH: [dirname(helm), process.env.PATH].join(delimiter),
    HELM_CACHE_HOME: home.path,
    HELM_CONFIG_HOME: home.path,
    REGISTRY: registry.host,
    VERSION: packageJson.version,
  };
  for (const commands of await pushCommands()) {
    const child = spawn('sh', ['-euc', commands], { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
    const ended = new Promise<number>(resolve => child.once('close', code => resolve(code ?? 1)));
    const [stderr, code] = await Promise.all([text(child.stderr), ended]);
    if (code !== 0) throw new Error(`${commands}${stderr}`);
  }
  await home.remove();
}
