import { labelsOf } from './metadata.ts';
import type { Target } from './target.ts';
import { CONTAINER_SECURITY, nodesOf, POD_SECURITY } from './workloads.ts';

const PORT = 6379;
/** The folder with the files of Redis. */
const DATA = '/data';
/** The user of the image. Other images may use a different user. */
const USER = 65_532;

/** Returns the settings that docs/configuration.md requires, as arguments of redis-server. */
function settings(target: Target): readonly unknown[] {
  const flags = {
    dir: DATA,
    appendonly: 'yes',
    appendfsync: 'always',
    'maxmemory-policy': 'noeviction',
    'lazyfree-lazy-expire': 'yes',
    'lazyfree-lazy-server-del': 'yes',
    'protected-mode': 'no',
  };
  return [
    ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]),
    '--maxmemory',
    target.value('redis.embedded.maxmemory', { as: 'text' }),
  ];
}

/**
 * Returns a single Redis for evaluation, consisting of a StatefulSet, its Service, and the Secret with the URL for the
 * roles.
 */
export function redisObjects(target: Target): readonly object[] {
  const labels = labelsOf(target, 'redis');
  const metadata = { name: `${target.prefix}-redis`, namespace: target.namespace, labels };
  const storageClass = 'redis.embedded.storageClassName';
  return [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...metadata, name: target.secretOf('redis') },
      type: 'Opaque',
      stringData: { url: `redis://${target.prefix}-redis:${PORT}` },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { clusterIP: 'None', selector: labels, ports: [{ name: 'redis', port: PORT, targetPort: 'redis' }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata,
      spec: {
        serviceName: metadata.name,
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: podSpec(target) },
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: {
              accessModes: ['ReadWriteOnce'],
              ...target.when(storageClass, { storageClassName: target.value(storageClass) }),
              resources: { requests: { storage: target.value('redis.embedded.storage') } },
            },
          },
        ],
      },
    },
  ];
}

function podSpec(target: Target): object {
  const probe = { tcpSocket: { port: 'redis' }, periodSeconds: 5 };
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: { ...POD_SECURITY, runAsUser: USER, runAsGroup: USER, fsGroup: USER },
    ...target.when('imagePullSecrets', { imagePullSecrets: target.tree('imagePullSecrets') }),
    ...nodesOf('redis.embedded', target),
    // Redis does not remove all of a write during which it was killed.
    initContainers: [
      {
        name: 'repair',
        image: target.image,
        imagePullPolicy: target.value('image.pullPolicy'),
        args: ['repair-redis', DATA],
        resources: target.tree('redis.embedded.resources'),
        // The pod status contains the reason for a refusal.
        terminationMessagePolicy: 'FallbackToLogsOnError',
        securityContext: CONTAINER_SECURITY,
        volumeMounts: [{ name: 'data', mountPath: DATA }],
      },
    ],
    containers: [
      {
        name: 'redis',
        image: target.redisImage,
        command: ['redis-server'],
        args: settings(target),
        ports: [{ name: 'redis', containerPort: PORT }],
        resources: target.tree('redis.embedded.resources'),
        readinessProbe: probe,
        // Loading the data after a crash takes time.
        startupProbe: { ...probe, failureThreshold: 120 },
        livenessProbe: { ...probe, periodSeconds: 10 },
        securityContext: CONTAINER_SECURITY,
        volumeMounts: [{ name: 'data', mountPath: DATA }],
      },
    ],
  };
}
