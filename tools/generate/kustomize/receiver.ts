import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../../../src/config/version.ts';
import { CONTAINER_SECURITY, POD_SECURITY } from '../manifests/workloads.ts';

const EXAMPLE = join(import.meta.dirname, '..', '..', '..', 'examples', 'receivers', 'node', 'receiver.mjs');

/** The image that docs/quickstart.md loads into the cluster. It contains Node.js, which runs the example. */
const IMAGE = `localhost/sluice:${VERSION}`;

const NAME = 'receiver';
const NAMESPACE = 'globex';
const FOLDER = '/receiver';
const PORT = 9797;

/** Returns the Node.js receiver example as a Deployment and a Service, along with the sample Subscription. */
export function receiverObjects(): readonly object[] {
  const labels = { 'app.kubernetes.io/name': NAME };
  const metadata = { name: NAME, namespace: NAMESPACE, labels };
  const secretKeyRef = { name: 'acme-orders-signing', key: 'secret' };
  const container = {
    name: NAME,
    image: IMAGE,
    command: ['/usr/bin/node', `${FOLDER}/receiver.mjs`],
    env: [
      { name: 'HOST', value: '0.0.0.0' },
      { name: 'PORT', value: `${PORT}` },
      // The container starts once the controller has created the Secret.
      { name: 'SIGNING_SECRET', valueFrom: { secretKeyRef } },
    ],
    ports: [{ name: 'http', containerPort: PORT }],
    resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '128Mi' } },
    securityContext: CONTAINER_SECURITY,
    volumeMounts: [{ name: 'program', mountPath: FOLDER }],
  };
  return [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata,
      data: { 'receiver.mjs': readFileSync(EXAMPLE, 'utf8') },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            automountServiceAccountToken: false,
            enableServiceLinks: false,
            securityContext: POD_SECURITY,
            containers: [container],
            volumes: [{ name: 'program', configMap: { name: NAME } }],
          },
        },
      },
    },
  ];
}
