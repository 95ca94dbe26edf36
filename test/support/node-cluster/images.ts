import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

const run = promisify(execFile);

const DETERMINISTIC = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];

export type ImportedImage = { readonly reference: string; readonly digest: string };

/**
 * Builds a docker-archive with one static program, which is the entry point.
 * @param image.source path of the C file
 * @param image.reference such as `localhost/pause:1`
 * @param folder new folder for intermediate files
 * @returns the path of the archive
 */
export async function buildStaticImage(
  image: { readonly source: string; readonly reference: string },
  folder: string,
): Promise<string> {
  const program = basename(image.source, '.c');
  const layer = join(folder, 'layer');
  const archive = join(folder, 'archive');
  await mkdir(layer, { recursive: true });
  await mkdir(archive);
  await run('gcc', ['-static', '-Os', '-s', '-o', join(layer, program), image.source]);
  await run('tar', [...DETERMINISTIC, '-C', layer, '-cf', join(archive, 'layer.tar'), '.']);
  const diff = createHash('sha256')
    .update(await readFile(join(archive, 'layer.tar')))
    .digest('hex');
  const config = {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Entrypoint: [`/${program}`] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${diff}`] },
  };
  await writeFile(join(archive, 'config.json'), JSON.stringify(config));
  const manifest = [{ Config: 'config.json', RepoTags: [image.reference], Layers: ['layer.tar'] }];
  await writeFile(join(archive, 'manifest.json'), JSON.stringify(manifest));
  const path = join(folder, `${program}.tar`);
  await run('tar', [...DETERMINISTIC, '-C', archive, '-cf', path, '.']);
  return path;
}

/**
 * Imports a docker-archive, an OCI archive, or the folder of an OCI layout into the images of a kubelet. Afterwards,
 * each image has two references: its own, and `name@digest`.
 * @param name for an OCI image whose index only contains a tag, such as `localhost/sluice`
 * @throws with the message of ctr if the file is not an image
 */
export async function importImage(socket: string, path: string, name?: string): Promise<ImportedImage[]> {
  const images = [`--address=${socket}`, '--namespace=k8s.io', 'images'];
  const base = name === undefined ? [] : [`--base-name=${name}`];
  const output = (await stat(path)).isDirectory()
    ? await importLayout([...images, 'import', ...base, '-'], path)
    : (await run('ctr', [...images, 'import', ...base, path])).stdout;
  const imported = [...output.matchAll(/^unpacking (\S+) \((sha256:[0-9a-f]+)\)/gm)];
  if (imported.length === 0) throw new Error(`${path} has no image for this machine:\n${output}`);
  for (const [, reference = '', digest = ''] of imported) {
    await run('ctr', [...images, 'tag', '--force', reference, `${reference.replace(/:[^:/]+$/, '')}@${digest}`]);
  }
  return imported.map(([, reference = '', digest = '']) => ({ reference, digest }));
}

/**
 * Imports a folder as a tar archive.
 * @returns the output of ctr
 */
async function importLayout(args: readonly string[], folder: string): Promise<string> {
  const tar = spawn('tar', ['-C', folder, '-c', '.'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ctr = spawn('ctr', args, { stdio: [tar.stdout, 'pipe', 'pipe'] });
  const code = new Promise<number | null>(resolve => {
    ctr.once('close', resolve);
    ctr.once('error', () => resolve(127));
  });
  const [stdout, stderr] = await Promise.all([text(ctr.stdout), text(ctr.stderr)]);
  if ((await code) !== 0) throw new Error(`importing ${folder} failed:\n${stderr.trim()}`);
  return stdout;
}
