import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cluster } from '../kubernetes/cluster.ts';
import { kubectl } from './stack.ts';

const SAMPLES = join(import.meta.dirname, '..', '..', '..', 'config', 'samples');

/** The port of the endpoint in the sample Subscription. */
export const SAMPLE_PORT = 9797;

/** The issuer of the owners in the sample Accounts. */
const SAMPLE_ISSUER = 'https://login.example.com';

/**
 * Copies the samples into `folder`, for owners of `issuer` and an endpoint on `port`.
 *
 * @returns the folder containing the copies
 */
export async function copySamples(folder: string, { port, issuer }: { port: number; issuer: string }): Promise<string> {
  const copies = join(folder, 'samples');
  await mkdir(copies);
  for (const name of (await readdir(SAMPLES)).filter(file => file.endsWith('.yaml'))) {
    const text = await readFile(join(SAMPLES, name), 'utf8');
    const moved = text.replaceAll(`127.0.0.1:${SAMPLE_PORT}`, `127.0.0.1:${port}`);
    await writeFile(join(copies, name), moved.replaceAll(SAMPLE_ISSUER, issuer));
  }
  return copies;
}

/**
 * Creates an ingress key for a workspace, which is a Secret of type `sluice.dev/ingress-key` in its namespace. Several
 * keys can be valid at the same time.
 * @returns the key
 */
export async function createIngressKey(cluster: Cluster, workspace: string, name: string): Promise<string> {
  const key = randomBytes(24).toString('base64url');
  await kubectl(
    cluster,
    ['apply', '-f', '-'],
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: workspace },
      type: 'sluice.dev/ingress-key',
      stringData: { key },
    }),
  );
  return key;
}

/** Reads the signing secret of a subscription from the Secret written by the controller, or '' if there is none. */
export async function readSigningSecrets(cluster: Cluster, namespace: string, subscription: string): Promise<string[]> {
  const secret = ['secret', `${subscription}-signing`, '-n', namespace, '--ignore-not-found'];
  const { stdout } = await cluster.kubectl(['get', ...secret, '-o=jsonpath={.data.secret}']);
  return stdout === '' ? [] : [Buffer.from(stdout, 'base64').toString('utf8')];
}
