import type { Cluster } from '../kubernetes/cluster.ts';
import { kubectl } from './stack.ts';

/** The workspace of the REST tour. */
export const REST_WORKSPACE = 'initech';

/**
 * Creates an account with an owner and a workspace, like the administrator of the platform for a new producer. The
 * owner does everything else using REST.
 * @returns the public workspace id, `ten_…`
 */
export async function createProducer(cluster: Cluster, issuer: string, subject: string): Promise<string> {
  const name = REST_WORKSPACE;
  const apiVersion = 'sluice.dev/v1alpha1';
  const owners = [{ issuer, subject, role: 'Owner' }];
  for (const object of [
    { apiVersion, kind: 'Account', metadata: { name }, spec: { owners, plan: 'Metered' } },
    { apiVersion, kind: 'Workspace', metadata: { name }, spec: { account: name } },
  ]) {
    await kubectl(cluster, ['apply', '-f', '-'], JSON.stringify(object));
  }
  await kubectl(cluster, ['wait', '--for=condition=Ready', '--timeout=30s', `workspace/${name}`]);
  return publicIdOf(cluster, [`workspace/${name}`]);
}

/** Returns the public id of a Sluice object, given its kubectl arguments. */
export function publicIdOf(cluster: Cluster, object: readonly string[]): Promise<string> {
  return kubectl(cluster, ['get', ...object, '-o=jsonpath={.status.publicId}']);
}
