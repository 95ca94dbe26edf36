import { existsSync, readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { KubeContext, KubeSource } from './kubeconfig.ts';

/** Folder in which Kubernetes mounts a pod's service account. */
const MOUNTED = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Returns the context for the pod's service account, or undefined if this is not running in a pod. Since the token
 * expires, its file is read again whenever it is used.
 *
 * @throws if there is a service account, but the API server's address is missing
 */
export function findServiceAccount(source: KubeSource): KubeContext | undefined {
  const { serviceHost: host, servicePort: port, serviceAccount: folder = MOUNTED } = source;
  const tokenFile = join(folder, 'token');
  if (!existsSync(tokenFile)) return undefined;
  if (!host || !port) {
    throw new Error(
      `found the service account in ${folder}, but KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set`,
    );
  }
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    namespace: readNamespace(join(folder, 'namespace')),
    ca: { file: join(folder, 'ca.crt') },
    user: { tokenFile },
  };
}

function readNamespace(file: string): string | undefined {
  return (existsSync(file) && readFileSync(file, 'utf8').trim()) || undefined;
}
