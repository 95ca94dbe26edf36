import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { parse } from 'yaml';
import type { Cluster } from './cluster.ts';

interface Kubeconfig {
  readonly clusters: readonly [
    { readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string } },
  ];
  readonly users: readonly [{ readonly user: { readonly token: string } }];
}

/** Returns the API server's metrics, in the text format of Prometheus. */
export async function readApiMetrics({ kubeconfig }: Pick<Cluster, 'kubeconfig'>): Promise<string> {
  const { clusters, users } = parse(await readFile(kubeconfig, 'utf8')) as Kubeconfig;
  const { server, 'certificate-authority-data': authority } = clusters[0].cluster;
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const options = {
    ca: Buffer.from(authority, 'base64'),
    headers: { authorization: `Bearer ${users[0].user.token}` },
    agent: false,
  };
  request(`${server}/metrics`, options, response => {
    if (response.statusCode === 200) text(response).then(resolve, reject);
    else reject(new Error(`/metrics returned ${response.resume().statusCode}`));
  })
    .on('error', reject)
    .end();
  return promise;
}
