export const IMAGE = 'localhost/greeter:1';
export const NAMESPACE = 'smoke';
export const PORT = 8080;

const LABELS = { app: 'greeter' };

export type PodOptions = {
  readonly name: string;
  readonly args: readonly string[];
  readonly uid: number;
  readonly image?: string;
};

/** A namespace that only admits Pods using the `restricted` profile. */
export const RESTRICTED_NAMESPACE = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: NAMESPACE, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
};

export const SERVICE = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'greeter', namespace: NAMESPACE },
  spec: { selector: LABELS, ports: [{ port: 80, targetPort: PORT }] },
};

/** A Pod that the profile `restricted` admits, with a read-only root file system. */
export function restrictedPod({ name, args, uid, image = IMAGE }: PodOptions) {
  const isServer = args[0] === 'serve';
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE, ...(isServer ? { labels: LABELS } : {}) },
    spec: {
      restartPolicy: isServer ? 'Always' : 'Never',
      terminationGracePeriodSeconds: 1,
      securityContext: { runAsNonRoot: true, runAsUser: uid, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'greeter',
          image,
          imagePullPolicy: 'IfNotPresent',
          args,
          ...(isServer ? { readinessProbe: { httpGet: { path: '/', port: PORT }, periodSeconds: 1 } } : {}),
          resources: { requests: { cpu: '10m', memory: '8Mi' }, limits: { memory: '16Mi' } },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    },
  };
}

const CLAIM = 'data';

export const VOLUME_CLAIM = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: CLAIM, namespace: NAMESPACE },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
};

/** A restricted Pod which mounts the volume of the claim at `/data`. */
export function podWithVolume(options: PodOptions) {
  const { spec, ...pod } = restrictedPod(options);
  const [container] = spec.containers;
  return {
    ...pod,
    spec: {
      ...spec,
      securityContext: { ...spec.securityContext, fsGroup: options.uid },
      containers: [{ ...container, volumeMounts: [{ name: CLAIM, mountPath: '/data' }] }],
      volumes: [{ name: CLAIM, persistentVolumeClaim: { claimName: CLAIM } }],
    },
  };
}

/** A Pod without a security context: as root, with the default capabilities. */
export function privilegedPod(name: string) {
  const pod = restrictedPod({ name, args: ['serve', String(PORT)], uid: 0 });
  const [container] = pod.spec.containers;
  return { ...pod, spec: { containers: [{ ...container, securityContext: {} }] } };
}
