import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { createAuthority } from '../certificates.ts';
import { startChild, waitUntilReady } from '../child-process.ts';
import { freePort } from '../free-port.ts';
import { httpsStatus } from '../kubernetes/readiness.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const run = promisify(execFile);

const READY_DEADLINE_MS = 30_000;

export type Registry = {
  /** The address and port. */
  readonly host: string;
  /** The path of its certificate authority (PEM). */
  readonly ca: string;
  /** Variables with which `skopeo` and `helm` trust the authority. */
  readonly env: Readonly<Record<string, string>>;
  /** Returns the number of requests for manifests and blobs with this path, e.g. `sluice-redis`. */
  readonly pulls: (repository: string) => number;
  readonly stop: () => Promise<void>;
};

/**
 * Returns the reason why this machine cannot run a registry and push to it (including a solution), or undefined if it
 * can.
 */
export async function registryRefusal(): Promise<string | undefined> {
  const missing: string[] = [];
  for (const program of ['docker-registry', 'skopeo']) {
    await run(program, ['--version']).catch(() => missing.push(program));
  }
  if (missing.length === 0) return undefined;
  return `${missing.join(' and ')} not found: on Debian, test/support/registry/install.sh installs them as root`;
}

/** Starts an empty registry with TLS on a free port. It ends with this process. @param address of this machine */
export async function startRegistry(address = '127.0.0.1'): Promise<Registry> {
  const folder = await temporaryFolder('registry');
  const authority = await createAuthority(folder.path);
  const { cert: certificate, key } = await authority.issue('registry', `IP:${address}`);
  const host = `${address}:${await freePort()}`;
  const config = join(folder.path, 'config.yaml');
  const settings = {
    version: '0.1',
    storage: { filesystem: { rootdirectory: join(folder.path, 'data') } },
    http: { addr: host, secret: 'of one registry', tls: { certificate, key } },
  };
  await writeFile(config, stringify(settings));
  const log = join(folder.path, 'registry.log');
  const server = startChild({ command: 'docker-registry', args: ['serve', config], log });
  await waitUntilReady(server, async () => (await httpsStatus(`https://${host}/v2/`, '')) === 200, {
    name: 'docker-registry',
    deadlineMs: READY_DEADLINE_MS,
  });
  return {
    host,
    ca: authority.ca,
    env: { SSL_CERT_FILE: authority.ca },
    pulls: repository => {
      const asked = readFileSync(log, 'utf8').match(/"GET \/v2\/\S+\/(manifests|blobs)\/\S+ /g) ?? [];
      return asked.filter(line => line.includes(`/v2/${repository}/`)).length;
    },
    stop: async () => {
      await server.stop();
      await folder.remove();
    },
  };
}
