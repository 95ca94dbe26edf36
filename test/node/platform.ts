import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { buildImage, buildRedisImage } from '../../tools/image/build.ts';
import { openHelm, outputOf, ROOT } from '../chart/support/helm.ts';
import { type Node, startNode } from '../support/node-cluster/node.ts';
import { pushAll } from '../support/registry/push.ts';
import { type Registry, startRegistry } from '../support/registry/registry.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type Receiver, startReceiver } from './receiver.ts';

/** An empty cluster, a registry with both images and the chart, and the endpoint of a partner. */
export type Platform = {
  readonly node: Node;
  readonly registry: Registry;
  readonly receiver: Receiver;
  /** @returns standard output. @throws with standard error if it fails */
  readonly kubectl: (args: readonly string[], objects?: readonly object[]) => Promise<string>;
  /** @returns standard output. @throws with standard error if it fails */
  readonly helm: (args: readonly string[], values?: object) => Promise<string>;
  /** Arguments for the chart in the registry. */
  readonly chart: readonly string[];
  readonly stop: () => Promise<void>;
};

export async function startPlatform(): Promise<Platform> {
  const folder = await temporaryFolder('platform');
  const dist = join(folder.path, 'dist');
  const build = async () => {
    await buildImage(ROOT, join(dist, 'image'));
    await buildRedisImage(ROOT, join(dist, 'redis-image'));
  };
  const [node, helm] = await Promise.all([startNode(), openHelm(), build()]);
  const { host } = node.network;
  const [registry, receiver] = await Promise.all([startRegistry(host), startReceiver(host)]);
  await cp(join(ROOT, 'charts'), join(folder.path, 'charts'), { recursive: true });
  await pushAll(folder.path, registry);
  await node.trustRegistry(registry.host, registry.ca);
  return {
    node,
    registry,
    receiver,
    kubectl: async (args, objects) => {
      const list = { apiVersion: 'v1', kind: 'List', items: objects };
      return outputOf(await node.kubectl(args, objects === undefined ? {} : { stdin: JSON.stringify(list) }));
    },
    helm: async (args, values) =>
      outputOf(await helm(args, { kubeconfig: node.kubeconfig, ...(values && { values: { ...values } }) })),
    chart: [`oci://${registry.host}/charts/sluice`, `--version=${packageJson.version}`, `--ca-file=${registry.ca}`],
    stop: async () => {
      receiver.stop();
      await node.stop();
      await registry.stop();
      await folder.remove();
    },
  };
}
