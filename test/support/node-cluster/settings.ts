import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { DNS_READY_PORT, type NodeFiles } from './components.ts';
import type { Network } from './network.ts';

/** The image of each Pod's first container, which is imported at startup. */
export const PAUSE_IMAGE = 'localhost/pause:1';

type Place = {
  readonly files: NodeFiles;
  readonly network: Network;
  readonly cgroup: string;
  readonly plugins: string;
};

/** Writes the configuration of containerd, CNI, kubelet, and CoreDNS. @param place.plugins folder of the CNI plugins */
export async function writeSettings(place: Place): Promise<void> {
  const { files } = place;
  await Promise.all([mkdir(files.cni, { recursive: true }), mkdir(files.registries, { recursive: true })]);
  await Promise.all([
    writeFile(files.containerd, formatContainerd(place)),
    writeFile(join(files.cni, '10-pods.conflist'), formatCni(place)),
    writeFile(files.kubelet, formatKubelet(place)),
    writeFile(files.resolver, `nameserver ${place.network.node}\n`),
    writeFile(files.corefile, formatCorefile(place)),
  ]);
}

function formatContainerd({ files, plugins }: Place): string {
  return `version = 2
# It writes to /opt, outside of the folders of the node.
disabled_plugins = ["io.containerd.internal.v1.opt"]

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = ${JSON.stringify(PAUSE_IMAGE)}
# Lowering a score takes CAP_SYS_RESOURCE, which a machine without it would not grant.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = ${JSON.stringify(plugins)}
conf_dir = ${JSON.stringify(files.cni)}

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = ${JSON.stringify(files.registries)}
`;
}

function formatCni({ network }: Place): string {
  const bridge = {
    type: 'bridge',
    bridge: 'pods',
    isGateway: true,
    ipMasq: true,
    hairpinMode: true,
    ipam: { type: 'host-local', ranges: [[{ subnet: network.pods }]], routes: [{ dst: '0.0.0.0/0' }] },
  };
  const portmap = { type: 'portmap', capabilities: { portMappings: true } };
  return JSON.stringify({ cniVersion: '1.0.0', name: 'pods', plugins: [bridge, portmap] }, undefined, 2);
}

function formatKubelet({ files, network, cgroup }: Place): string {
  return stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${cgroup}`,
    // Hybrid hierarchies still have the controllers in v1.
    failCgroupV1: false,
    failSwapOn: false,
    oomScoreAdj: 0,
    clusterDomain: 'cluster.local',
    clusterDNS: [network.node],
    resolvConf: files.resolver,
    address: network.node,
    healthzPort: 0,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: files.kubeletClient },
    },
    authorization: { mode: 'Webhook' },
    // Imported images cannot be pulled again, and the disk is shared with the host.
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    evictionHard: { 'memory.available': '100Mi' },
  });
}

/** Refuses names outside of the cluster immediately because the node cannot access other networks. */
function formatCorefile({ files, network }: Place): string {
  return `. {
  bind ${network.node}
  ready ${network.node}:${DNS_READY_PORT}
  errors
  kubernetes cluster.local {
    kubeconfig ${files.kubeconfig}
  }
}
`;
}
