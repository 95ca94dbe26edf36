import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../command.ts';

/** Downloads packages from the machine's own Debian sources. */
export interface Apt {
  /** Downloads a package such as `libc6` or `libc6=2.36-9` to a path. */
  readonly download: (wanted: string, path: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

/**
 * Prepares apt for downloading packages of an architecture, which can differ from the machine's. It uses separate
 * folders, so no changes are made to the machine, and root is not required. The list of packages (10 MB) is fetched
 * with the first download.
 */
export async function openApt(architecture: string): Promise<Apt> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-apt-'));
  const settings = [
    `Dir::State::lists=${join(folder, 'lists')}`,
    'Dir::State::status=/dev/null',
    `Dir::Cache=${join(folder, 'cache')}`,
    // apt would change to the user _apt, which must not access this folder.
    'APT::Sandbox::User=root',
    'Acquire::Languages=none',
    'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false',
    `APT::Architecture=${architecture}`,
    `APT::Architectures=${architecture}`,
  ].flatMap(setting => ['-o', setting]);
  let updated: Promise<unknown> | undefined;
  return {
    download: async (wanted, path) => {
      await (updated ??= update());
      const cwd = await mkdtemp(join(folder, 'package-'));
      await run('apt-get', [...settings, 'download', wanted], { cwd });
      const [file = ''] = await readdir(cwd);
      await rename(join(cwd, file), path);
    },
    close: () => rm(folder, { recursive: true, force: true }),
  };

  async function update(): Promise<void> {
    await Promise.all(['lists', 'cache'].map(name => mkdir(join(folder, name))));
    await run('apt-get', [...settings, 'update']);
  }
}
