import { join } from 'node:path';

/** The paths of a cluster within its temporary folder. */
export function clusterFiles(folder: string) {
  return {
    etcdData: join(folder, 'etcd'),
    certificates: join(folder, 'certificates'),
    /** The self-signed certificate of the API server (PEM), which the API server reads from its `--cert-dir`. */
    authority: join(folder, 'certificates', 'apiserver.crt'),
    servingKey: join(folder, 'certificates', 'apiserver.key'),
    tokens: join(folder, 'tokens.csv'),
    serviceAccountKey: join(folder, 'service-account.key'),
    serviceAccountPublicKey: join(folder, 'service-account.pub'),
    kubeconfig: join(folder, 'kubeconfig'),
    kubectlCache: join(folder, 'kubectl-cache'),
    log: (component: string) => join(folder, `${component}.log`),
  };
}

export type ClusterFiles = ReturnType<typeof clusterFiles>;

export type ClusterPorts = { readonly etcd: number; readonly etcdPeer: number; readonly apiServer: number };

export function etcdArguments(files: ClusterFiles, ports: ClusterPorts): string[] {
  const client = `http://127.0.0.1:${ports.etcd}`;
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  return [
    `--data-dir=${files.etcdData}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    // The data is deleted with the cluster. Killing etcd does not lose any data, unlike a power failure.
    '--unsafe-no-fsync',
    '--log-level=error',
  ];
}

export function apiServerArguments(files: ClusterFiles, ports: ClusterPorts): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${ports.etcd}`,
    `--cert-dir=${files.certificates}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${ports.apiServer}`,
    '--service-cluster-ip-range=10.0.0.0/24',
    '--allow-privileged=true',
    '--authorization-mode=RBAC',
    `--token-auth-file=${files.tokens}`,
    // There is no controller that creates default service accounts, so pods could not be admitted.
    '--disable-admission-plugins=ServiceAccount',
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    `--service-account-key-file=${files.serviceAccountPublicKey}`,
    `--service-account-signing-key-file=${files.serviceAccountKey}`,
    '--endpoint-reconciler-type=none',
    // There are no clients of a stopped cluster that need time to disconnect.
    '--shutdown-delay-duration=0s',
  ];
}

export function controllerManagerArguments(files: ClusterFiles): string[] {
  const controllers = [
    'namespace-controller',
    'garbage-collector-controller',
    'serviceaccount-controller',
    'serviceaccount-token-controller',
    'clusterrole-aggregation-controller',
  ];
  return [
    `--kubeconfig=${files.kubeconfig}`,
    `--controllers=${controllers.join(',')}`,
    `--service-account-private-key-file=${files.serviceAccountKey}`,
    `--root-ca-file=${files.authority}`,
    '--leader-elect=false',
    '--secure-port=0',
  ];
}
