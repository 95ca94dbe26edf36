import type { ValueSet } from './helm.ts';

/** The values required by every installation. */
export const REQUIRED = {
  image: { registry: 'registry.example.com' },
  redis: { existingSecret: 'sluice-redis' },
  rootKey: { existingSecret: 'sluice-root-key' },
  oidc: { issuers: ['https://login.example.com'], audience: 'sluice' },
};

const ISSUER = { name: 'internal', kind: 'ClusterIssuer' };
const GATEWAY = [{ name: 'public', namespace: 'gateways' }];

/** Different types of installations, by name. */
export const VALUE_SETS: Readonly<Record<string, ValueSet>> = {
  minimal: REQUIRED,
  evaluation: {
    ...REQUIRED,
    redis: { embedded: { enabled: true, storageClassName: 'local' } },
    controller: { replicas: 1 },
    facade: { replicas: 1 },
  },
  production: {
    ...REQUIRED,
    image: { registry: 'registry.example.com', repository: 'events/sluice', digest: `sha256:${'4b'.repeat(32)}` },
    imagePullSecrets: [{ name: 'registry' }],
    oidc: {
      issuers: ['https://a.example.com', 'https://b.example.com'],
      audience: 'sluice',
      algorithms: ['ES256'],
      requireInvitedEmail: true,
    },
    smtp: { existingSecret: 'mail', from: 'Sluice <sluice@example.com>', invitationUrl: 'https://app.example.com/i' },
    allowedNetworks: ['10.8.0.0/16'],
    refusedNetworks: ['203.0.113.7/32', '2001:db8:64::/96', '10.8.3.0/24'],
    allowedPorts: [443, 8443],
    endpointConsentOrigin: 'events.example.com',
    instance: 'blue',
    trustedProxies: ['10.9.0.0/16', 'fd00::/8'],
    limits: {
      queueMaxBytes: 1_073_741_824_000,
      ingressPerAddress: 900,
      ingressPerKey: 500,
      ingressPerWorkspace: 800,
      accounts: {
        free: { streams: 5, eventsPerSecond: 'unlimited' },
        metered: { storedBytes: 1_099_511_627_776 },
        max: { streams: 4_000 },
        invited: { streams: 0 },
      },
    },
    workspaces: { defaultQuota: { 'count/activations.sluice.dev': '10000', 'count/packages.sluice.dev': 100 } },
    shutdownDelaySeconds: 20,
    networkPolicy: { enabled: true },
    tracing: { endpoint: 'http://collector:4318', sampler: 'parentbased_traceidratio', samplerArg: '0.05' },
    dispatcher: {
      replicas: 6,
      maxUnavailable: '50%',
      priorityClassName: 'system-cluster-critical',
      nodeSelector: { 'kubernetes.io/arch': 'amd64' },
      tolerations: [{ key: 'events', operator: 'Exists', effect: 'NoSchedule' }],
      affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
      podLabels: { team: 'events' },
      podAnnotations: { 'example.com/owner': 'events' },
      extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/etc/ca/ca.crt' }],
      extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
      extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/ca', readOnly: true }],
    },
  },
  cluster: {
    ...REQUIRED,
    redis: { url: 'rediss://user:secret@redis-0.example.com:6379,rediss://user:secret@redis-1.example.com:6379' },
  },
  sentinel: {
    ...REQUIRED,
    redis: {
      url: 'rediss+sentinel://user@sentinel-0.example.com:26379,sentinel-1.example.com:26379/events/1',
      passwordSecret: 'redis-password',
      tls: { caSecret: 'redis-ca', clientSecret: 'redis-client', serverName: 'redis.example.com' },
      sentinel: { username: 'watcher', passwordSecret: 'sentinel-password' },
    },
  },
  'a Redis user for each role': {
    ...REQUIRED,
    redis: { existingSecret: 'sluice-redis', usersSecret: 'redis-users' },
  },
  ingress: {
    ...REQUIRED,
    ingress: { expose: { type: 'Ingress', host: 'events.example.com', className: 'nginx', tlsSecret: 'events-tls' } },
    facade: {
      expose: { type: 'Ingress', host: 'api.example.com', annotations: { 'example.com/body-size': '1m' } },
      service: { type: 'LoadBalancer', port: 8080, annotations: { 'example.com/internal': 'true' } },
    },
  },
  'a load balancer and an autoscaler': {
    ...REQUIRED,
    ingress: {
      replicas: null,
      service: {
        type: 'LoadBalancer',
        extraSpec: {
          externalTrafficPolicy: 'Local',
          loadBalancerClass: 'a.example/b',
          ipFamilyPolicy: 'SingleStack',
        },
      },
    },
    facade: { autoscaled: true },
  },
  gateway: {
    ...REQUIRED,
    ingress: { expose: { type: 'HTTPRoute', host: 'events.example.com', parentRefs: GATEWAY } },
    facade: { expose: { type: 'HTTPRoute', host: 'api.example.com', parentRefs: GATEWAY } },
  },
  certificates: {
    ...REQUIRED,
    redis: { url: 'rediss://redis.example.com:6379', tls: { clientSecret: 'redis-client', clientIssuerRef: ISSUER } },
    trust: { configMap: 'authorities' },
    ingress: {
      tls: { secretName: 'events-tls', issuerRef: ISSUER },
      service: { type: 'LoadBalancer', port: 443 },
    },
    facade: {
      tls: { secretName: 'api-tls', issuerRef: ISSUER },
      expose: { type: 'Ingress', host: 'api.example.com' },
    },
    networkPolicy: { enabled: true },
  },
  'without the facade': { ...REQUIRED, oidc: {}, facade: { enabled: false } },
  monitoring: {
    ...REQUIRED,
    monitoring: {
      podMonitor: { enabled: true, labels: { release: 'prometheus' } },
      prometheusRule: { enabled: true, runbookUrl: 'https://runbooks.example.com/sluice' },
      dashboards: { enabled: true },
      kubeStateMetrics: { enabled: true, labels: { team: 'platform' } },
    },
  },
  'all in one': {
    ...REQUIRED,
    mode: 'all',
    smtp: { url: 'smtp://mail.example.com' },
    trust: { configMap: 'authorities' },
    ingress: { tls: { secretName: 'events-tls' } },
    facade: { tls: { secretName: 'api-tls' } },
    networkPolicy: { enabled: true },
    redis: { embedded: { enabled: true, image: 'registry.example.com/redis:8.2' } },
  },
  'networks in any notation': {
    ...REQUIRED,
    allowedNetworks: ['10.1.2.3/16', '192.0.2.77/29', 'FD00:8::1.2.3.4/36', 'fd00:9:1::/48', '10.7.0.0/16'],
    refusedNetworks: ['10.1.200.9/20', '203.0.113.9/30', '2001:db8:64::9/97', '10.6.5.4/15'],
    networkPolicy: {
      enabled: true,
      clusterNetworks: ['10.1.2.3/8', 'fd00::1/8', '169.254.0.0/16'],
      clusterNetworksV6: ['fe80::1/10', '172.16.0.1/12'],
    },
  },
  'namespaced secrets': { ...REQUIRED, secrets: { access: 'namespaced' } },
  'rights for everybody': { ...REQUIRED, rbac: { aggregate: true }, crds: { keep: false }, fullnameOverride: 'events' },
};

/** Wrong values, with the expected error. Values are either misspelled or contradict each other. */
export const REFUSALS: readonly (readonly [name: string, values: ValueSet, sentence: RegExp])[] = [
  ['a misspelt role', { ...REQUIRED, controler: { replicas: 2 } }, /additional properties 'controler' not allowed/],
  ['a misspelt key', { ...REQUIRED, dispatcher: { replica: 2 } }, /at '\/dispatcher'.*'replica' not allowed/],
  [
    'a number as a text',
    { ...REQUIRED, dispatcher: { replicas: '2' } },
    /at '\/dispatcher\/replicas': got string, want integer/,
  ],
  ['a section that is null', { ...REQUIRED, uninstall: null }, /missing property 'uninstall'/],
  ['a choice that is null', { ...REQUIRED, secrets: { access: null } }, /at '\/secrets': missing property 'access'/],
  ['a switch that is null', { ...REQUIRED, uninstall: { enabled: null } }, /'\/uninstall': missing property 'enabled'/],
  [
    'a label of a pod that its Deployment selects by',
    { ...REQUIRED, ingress: { podLabels: { 'app.kubernetes.io/component': 'web' } } },
    /ingress\.podLabels contains app\.kubernetes\.io\/component, which the chart sets. Choose another label/,
  ],
  [
    'labels and annotations that the chart sets itself',
    {
      ...REQUIRED,
      monitoring: {
        podMonitor: { labels: { 'app.kubernetes.io/instance': 'prometheus' } },
        prometheusRule: { labels: { 'app.kubernetes.io/name': 'rules', 'helm.sh/chart': 'rules' } },
      },
      ingress: { podAnnotations: { 'checksum/config': '1' } },
    },
    new RegExp(
      [
        'ingress.podAnnotations contains checksum/config, which the chart sets. Choose another annotation',
        '- monitoring.podMonitor.labels contains app.kubernetes.io/instance, which the chart sets. Choose another label',
        '- monitoring.prometheusRule.labels contains app.kubernetes.io/name, which the chart sets. Choose another label',
        '- monitoring.prometheusRule.labels contains helm.sh/chart, which',
      ].join('\n'),
    ),
  ],
  [
    'a field of a Service that selects its pods',
    { ...REQUIRED, ingress: { service: { extraSpec: { selector: { app: 'other' } } } } },
    /ingress\.service\.extraSpec contains selector, which the chart sets. Remove it/,
  ],
  [
    'fields of a Service that have their own values',
    { ...REQUIRED, facade: { service: { extraSpec: { ports: [], type: 'NodePort' } } } },
    /facade\.service\.extraSpec contains ports, which the chart sets. Use facade\.service\.port\n.*contains type, which the chart sets. Use facade\.service\.type$/m,
  ],
  // Without ports, the rule would allow every connection.
  ['ports that are null', { ...REQUIRED, networkPolicy: { smtpPorts: null } }, /missing property 'smtpPorts'/],
  ['a number that is null', { ...REQUIRED, limits: { ingressPerKey: null } }, /missing property 'ingressPerKey'/],
  ['a repository that is null', { ...REQUIRED, image: { repository: null } }, /missing property 'repository'/],
  [
    'a number of pods as a text',
    { ...REQUIRED, ingress: { maxUnavailable: '1' } },
    /at '\/ingress\/maxUnavailable'.*'1' does not match pattern/s,
  ],
  [
    'a variable that the pod has anyway',
    {
      ...REQUIRED,
      trust: { configMap: 'authorities' },
      ingress: { extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/etc/ca/ca.crt' }] },
    },
    /ingress\.extraEnv has NODE_EXTRA_CA_CERTS, but the chart sets this variable as well/,
  ],
  [
    'a variable twice',
    { ...REQUIRED, ingress: { extraEnv: ['a', 'b'].map(value => ({ name: 'HTTPS_PROXY', value })) } },
    /has HTTPS_PROXY, but the chart sets this variable as well, or extraEnv has it twice\. Remove one of them\n(?!- )/,
  ],
  [
    'a port that the probes do not know',
    { ...REQUIRED, dispatcher: { extraEnv: [{ name: 'SLUICE_OPS_PORT', value: '9100' }] } },
    /dispatcher\.extraEnv has SLUICE_OPS_PORT, but the ports of the pods are fixed/,
  ],
  [
    'a size for Redis in a unit of Kubernetes',
    { ...REQUIRED, redis: { embedded: { enabled: true, maxmemory: '400Mi' } } },
    /at '\/redis\/embedded\/maxmemory': '400Mi' does not match/,
  ],
  [
    'more memory for Redis than its container has',
    { ...REQUIRED, redis: { embedded: { enabled: true, maxmemory: '1GB', resources: { limits: { memory: 1e9 } } } } },
    /redis\.embedded\.maxmemory is 1GB but .*limits\.memory is 1e\+09\. The container would be killed before Redis/,
  ],
  [
    'a Redis without a limit of its own',
    { ...REQUIRED, redis: { embedded: { enabled: true, maxmemory: '0' } } },
    /redis\.embedded\.maxmemory is 0, which is no limit, but redis\.embedded\.resources\.limits\.memory is 512Mi\. /,
  ],
  [
    'two passwords for Redis',
    { ...REQUIRED, redis: { url: 'redis://a', usersSecret: 'users', passwordSecret: 'password' } },
    /redis\.usersSecret and redis\.passwordSecret are set, but a role has only one password/,
  ],
  [
    'users of a Redis without users',
    { ...REQUIRED, redis: { embedded: { enabled: true }, usersSecret: 'users' } },
    /redis\.usersSecret is set, but the Redis of redis\.embedded\.enabled has no users/,
  ],
  [
    'a password for Redis in the URL and in a Secret',
    { ...REQUIRED, redis: { url: 'redis://:a@redis', passwordSecret: 'password' } },
    /redis\.url has a password, and redis\.passwordSecret is set/,
  ],
  [
    'a user for Redis in the URL and one for each role',
    { ...REQUIRED, redis: { url: 'redis://a@redis', usersSecret: 'users' } },
    /redis\.usersSecret is set, but redis\.url has a user or a password/,
  ],
  [
    'certificates for a Redis without TLS',
    { ...REQUIRED, redis: { url: 'redis+sentinel://a:26379/events', tls: { caSecret: 'ca' } } },
    /redis\.tls is set, but the connection does not use TLS/,
  ],
  [
    'certificates for the Redis for evaluation',
    { ...REQUIRED, redis: { embedded: { enabled: true }, tls: { serverName: 'redis.example.com' } } },
    /redis\.tls is set, but the connection does not use TLS/,
  ],
  [
    'a user for Sentinels that are not used',
    { ...REQUIRED, redis: { url: 'redis://redis', sentinel: { username: 'watcher' } } },
    /redis\.sentinel is set, but there is no Sentinel/,
  ],
  [
    'a misspelt limit',
    { ...REQUIRED, limits: { accounts: { free: { stream: 5 } } } },
    /at '\/limits\/accounts\/free'.*stream/s,
  ],
  [
    'a number as a label',
    { ...REQUIRED, dispatcher: { podLabels: { cell: 1 } } },
    /podLabels\/cell': got number, want/,
  ],
  [
    'a switch as an annotation',
    { ...REQUIRED, ingress: { service: { annotations: { 'a.example/internal': true } } } },
    /a\.example~1internal': got boolean, want string/,
  ],
  ['an unknown mode', { ...REQUIRED, mode: 'single' }, /at '\/mode': value must be one of 'roles', 'all'/],
  ['no registry', { ...REQUIRED, image: {} }, /image\.registry is required, because there is no default registry/],
  ['a URL as a registry', { ...REQUIRED, image: { registry: 'https://a.example' } }, /at '\/image\/registry'/],
  ['a registry with a slash', { ...REQUIRED, image: { registry: 'a.example/' } }, /at '\/image\/registry'/],
  ['a tag as a digest', { ...REQUIRED, image: { registry: 'a', digest: '1.0' } }, /at '\/image\/digest'.*sha256/],
  ['no Redis', { ...REQUIRED, redis: {} }, /Redis is required\. Set redis\.url, redis\.existingSecret, or/],
  [
    'two Redis',
    { ...REQUIRED, redis: { existingSecret: 'redis', url: 'redis://redis:6379' } },
    /redis\.url and redis\.existingSecret are set, but there can only be one Redis/,
  ],
  ['a Redis by http', { ...REQUIRED, redis: { url: 'http://redis:6379' } }, /redis\.url must be redis:\/\//],
  [
    'a Sentinel without the name of its master',
    { ...REQUIRED, redis: { url: 'redis+sentinel://sentinel:26379' } },
    /redis\+sentinel:\/\/host:port,host:port\/<master name>/,
  ],
  ['no root key', { ...REQUIRED, rootKey: {} }, /rootKey\.existingSecret is required because Helm cannot access/],
  ['no identity provider', { ...REQUIRED, oidc: {} }, /oidc\.issuers and oidc\.audience are required for the REST API/],
  [
    'an issuer by http',
    { ...REQUIRED, oidc: { issuers: ['http://a.example'], audience: 'a' } },
    /must be an https URL/,
  ],
  [
    'two mail servers',
    { ...REQUIRED, smtp: { url: 'smtp://a', existingSecret: 'mail' } },
    /smtp\.url and smtp\.existingSecret are set, but there can only be one mail server/,
  ],
  ['a sender without a server', { ...REQUIRED, smtp: { from: 'a@b.example' } }, /no effect without a mail server/],
  [
    'an issuer without a Secret',
    { ...REQUIRED, ingress: { tls: { issuerRef: ISSUER } } },
    /ingress\.tls\.issuerRef is set, but ingress\.tls\.secretName is not/,
  ],
  [
    'an issuer for Redis without a Secret',
    { ...REQUIRED, redis: { url: 'rediss://redis:6379', tls: { clientIssuerRef: ISSUER } } },
    /redis\.tls\.clientIssuerRef is set, but redis\.tls\.clientSecret is not/,
  ],
  ['no host', { ...REQUIRED, ingress: { expose: { type: 'Ingress' } } }, /ingress\.expose\.host is required if/],
  [
    'a route without a gateway',
    { ...REQUIRED, facade: { expose: { type: 'HTTPRoute', host: 'a.example' } } },
    /facade\.expose\.parentRefs is required for an HTTPRoute/,
  ],
  [
    'a certificate for a route',
    { ...REQUIRED, facade: { expose: { type: 'HTTPRoute', host: 'a.example', parentRefs: GATEWAY, tlsSecret: 'a' } } },
    /facade\.expose\.tlsSecret is set, but only an Ingress uses it, and facade\.expose\.type is HTTPRoute\. Remove it/,
  ],
  [
    'a gateway and a class without an object',
    { ...REQUIRED, ingress: { expose: { className: 'nginx', parentRefs: GATEWAY } } },
    /className is set, but only an Ingress uses it.*\n.*parentRefs is set, but only an HTTPRoute uses it, .* is None/,
  ],
  [
    'a way to a facade that is not there',
    { ...REQUIRED, oidc: {}, facade: { enabled: false, expose: { type: 'Ingress', host: 'a.example' } } },
    /facade\.expose\.type is set, but facade\.enabled is false/,
  ],
  [
    'an algorithm that the roles refuse',
    { ...REQUIRED, oidc: { ...REQUIRED.oidc, algorithms: ['HS256'] } },
    /at '\/oidc\/algorithms\/0': value must be one of 'RS256'/,
  ],
  [
    'an address as a network',
    { ...REQUIRED, allowedNetworks: ['10.0.0.1'] },
    /at '\/allowedNetworks\/0'.*does not match/,
  ],
  [
    'an address as a network of the cluster',
    { ...REQUIRED, networkPolicy: { clusterNetworksV6: ['fd00::1'] } },
    /at '\/networkPolicy\/clusterNetworksV6\/0'.*does not match/,
  ],
  [
    'networks with a prefix or an address that does not exist',
    {
      ...REQUIRED,
      allowedNetworks: ['10.0.0.0/33', '10.0.0.256/32', '10.0.0/8', '0.0.0.0/0'],
      refusedNetworks: ['fd00::/129', 'fd00::1::/64', 'fd00:::/64', '1:2:3:4:5:6:7/64', '1:2:3:4::5:6:7:8/64', '::/0'],
      trustedProxies: ['fd00:12345::/32', '::1.2.3.400/128', '1:2:3:4:5:6:7::/112', '1:2:3:4:5:6:1.2.3.4/128'],
      networkPolicy: { clusterNetworks: ['10.0.0.0/08'], clusterNetworksV6: ['fe80:/10'] },
    },
    new RegExp(
      [
        ...['10.0.0.0/33', '10.0.0.256/32', '10.0.0/8'].map(
          network => `- allowedNetworks has "${network}", which is not`,
        ),
        '- networkPolicy.clusterNetworks has "10.0.0.0/08", .* from /0 to /32, e.g. 10.0.0.0/8',
        '- networkPolicy.clusterNetworksV6 has "fe80:/10"',
        ...['fd00::/129', 'fd00::1::/64', 'fd00:::/64', '1:2:3:4:5:6:7/64', '1:2:3:4::5:6:7:8/64'].map(
          network => `- refusedNetworks has "${network}"`,
        ),
        '- trustedProxies has "fd00:12345::/32"',
        '- trustedProxies has "::1.2.3.400/128".*\n(?!- )',
      ].join('.*\n'),
    ),
  ],
  ['an address as a proxy', { ...REQUIRED, trustedProxies: ['10.0.0.1'] }, /at '\/trustedProxies\/0'.*does not match/s],
  ['a mail server by http', { ...REQUIRED, smtp: { url: 'http://mail' } }, /at '\/smtp\/url'.*does not match/],
  ['no ports for Redis', { ...REQUIRED, networkPolicy: { redisPorts: [] } }, /redisPorts': minItems/],
];
