import { join } from 'node:path';
import type { Network } from './network.ts';

/** The paths of a node within its folder. */
export function nodeFiles(folder: string) {
  const settings = join(folder, 'settings');
  return {
    settings,
    etcdData: join(folder, 'etcd'),
    certificates: join(folder, 'certificates'),
    /**
     * The certificates of the API server and its authority (PEM), which the API server creates during its first start.
     */
    authority: join(folder, 'certificates', 'apiserver.crt'),
    /** The certificate with which the kubelet identifies the API server. It is its own authority. */
    kubeletClient: join(folder, 'certificates', 'kubelet-client.crt'),
    kubeletClientKey: join(folder, 'certificates', 'kubelet-client.key'),
    tokens: join(folder, 'tokens.csv'),
    serviceAccountKey: join(folder, 'service-account.key'),
    serviceAccountPublicKey: join(folder, 'service-account.pub'),
    /** The kubeconfig of the administrator. */
    kubeconfig: join(folder, 'kubeconfig'),
    kubeconfigOf: (component: string) => join(folder, `${component}.kubeconfig`),
    kubectlCache: join(folder, 'kubectl-cache'),
    /** In the namespaces of the node, this is the default path. */
    containerdSocket: join(folder, 'root', 'run', 'containerd', 'containerd.sock'),
    containerd: join(settings, 'containerd.toml'),
    cni: join(settings, 'cni'),
    registries: join(settings, 'registries'),
    kubelet: join(settings, 'kubelet.yaml'),
    resolver: join(settings, 'resolv.conf'),
    corefile: join(settings, 'Corefile'),
  };
}

export type NodeFiles = ReturnType<typeof nodeFiles>;

export const NODE_NAME = 'node';
export const API_PORT = 6443;

/** The port on which CoreDNS reports whether it has read the Services. */
export const DNS_READY_PORT = 8181;

const ETCD = 'http://127.0.0.1:2379';

export function etcdArguments(files: NodeFiles): string[] {
  // The default addresses are loopback addresses, which are separate for each node.
  return [`--data-dir=${files.etcdData}`, '--unsafe-no-fsync', '--log-level=error'];
}

export function apiServerArguments(files: NodeFiles, { node, services }: Network): string[] {
  return [
    `--etcd-servers=${ETCD}`,
    `--cert-dir=${files.certificates}`,
    `--bind-address=${node}`,
    `--advertise-address=${node}`,
    `--secure-port=${API_PORT}`,
    `--service-cluster-ip-range=${services}`,
    '--allow-privileged=true',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    `--token-auth-file=${files.tokens}`,
    // The resolver of the host cannot resolve the name of the node.
    '--kubelet-preferred-address-types=InternalIP',
    `--kubelet-client-certificate=${files.kubeletClient}`,
    `--kubelet-client-key=${files.kubeletClientKey}`,
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    `--service-account-key-file=${files.serviceAccountPublicKey}`,
    `--service-account-signing-key-file=${files.serviceAccountKey}`,
  ];
}

export function controllerManagerArguments(files: NodeFiles): string[] {
  return [
    `--kubeconfig=${files.kubeconfigOf('kube-controller-manager')}`,
    '--use-service-account-credentials',
    `--service-account-private-key-file=${files.serviceAccountKey}`,
    `--root-ca-file=${files.authority}`,
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
  ];
}

export function schedulerArguments(files: NodeFiles): string[] {
  const kubeconfig = files.kubeconfigOf('kube-scheduler');
  return [`--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--bind-address=127.0.0.1'];
}

export function kubeletArguments(files: NodeFiles, { node }: Network): string[] {
  return [
    `--config=${files.kubelet}`,
    `--kubeconfig=${files.kubeconfigOf('kubelet')}`,
    `--hostname-override=${NODE_NAME}`,
    `--node-ip=${node}`,
    '--node-labels=topology.kubernetes.io/region=local,topology.kubernetes.io/zone=local',
  ];
}

export function proxyArguments(files: NodeFiles, { pods }: Network): string[] {
  return [
    `--kubeconfig=${files.kubeconfigOf('kube-proxy')}`,
    `--hostname-override=${NODE_NAME}`,
    `--cluster-cidr=${pods}`,
    '--proxy-mode=iptables',
    // These limits apply to the whole machine. 0 does not change them.
    '--conntrack-max-per-core=0',
    '--conntrack-tcp-timeout-established=0',
    '--conntrack-tcp-timeout-close-wait=0',
  ];
}
