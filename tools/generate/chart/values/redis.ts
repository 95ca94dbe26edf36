import { z } from 'zod';
import { meaningOf } from './descriptions.ts';
import { openObject, section, text } from './value-types.ts';
import { issuerRef, nodes } from './workload.ts';

export const redis = section('Redis. You need to set one of url, existingSecret, and embedded.enabled.', {
  url: text(meaningOf('SLUICE_REDIS_URL')),
  existingSecret: text(
    'The name of the Secret containing the Redis URL in the key url. If it has changed, restart all pods.',
  ),
  passwordSecret: text(
    'The name of the Secret containing the password in the key password, instead of including it in the URL. You can change the password without a restart.',
  ),
  usersSecret: text(
    'The name of the Secret containing the password of each Redis user, by component, e.g. in the key ingress. If set, each role uses its own Redis user, e.g. sluice-ingress, instead of the user in the URL. The keys are controller, facade, ingress, dispatcher, and uninstall, or all and uninstall if mode is all. config/redis/users.acl contains the users.',
  ),
  tls: section(
    'Certificates for rediss:// and rediss+sentinel://. You can change the certificates without a restart.',
    {
      caSecret: text('The name of the Secret containing the certificates of the authorities in the key ca.crt.'),
      clientSecret: text('The name of the Secret containing a client certificate in the keys tls.crt and tls.key.'),
      serverName: text(meaningOf('SLUICE_REDIS_SERVER_NAME')),
      clientIssuerRef: issuerRef('clientSecret, using the prefix of all names as its common name'),
    },
  ),
  waitReplicas: z.int().min(0).max(5).default(0).describe(meaningOf('SLUICE_REDIS_WAIT_REPLICAS')),
  sentinel: section('The user and password for the Sentinels, if they are different from those for Redis.', {
    username: text(meaningOf('SLUICE_REDIS_SENTINEL_USERNAME')),
    passwordSecret: text('The name of the Secret containing the password for the Sentinels in the key password.'),
  }),
  embedded: section('A single Redis without replicas, which should only be used for evaluation.', {
    enabled: z
      .boolean()
      .default(false)
      .describe('If true, a single Redis is installed together with Sluice, for evaluation.'),
    image: text(
      'An image with redis-server 7.0 or later, e.g. registry.example.com/redis:8.2. Defaults to the image built by make image, which uses the registry and the Sluice repository, followed by -redis and the tag.',
    ),
    storage: text("The size of the volume. It can't be changed by an upgrade.", '8Gi'),
    storageClassName: text('The storage class of the volume. Defaults to the default class of the cluster.'),
    maxmemory: text(
      'The memory limit of Redis itself in bytes or in the units of Redis (kb, mb, gb), e.g. 800mb. This must be less than limits.memory. We recommend 75 %.',
      '400mb',
      { regex: /^[0-9]+([kKmMgG]?[bB]|[kKmMgG])?$/, rule: 'must be a size in the units of Redis, e.g. 800mb' },
    ),
    resources: openObject('The resource requests and limits.', {
      requests: { cpu: '100m', memory: '256Mi' },
      limits: { memory: '512Mi' },
    }),
    ...nodes('pod'),
  }),
});
