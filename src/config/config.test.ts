import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ConfigError, readConfig } from './config.ts';
import { ENVIRONMENT } from './environment.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-config-'));
const rootKey = join(folder, 'root.key');
writeFileSync(rootKey, Buffer.alloc(32, 1));
writeFileSync(join(folder, 'short.key'), Buffer.alloc(31, 1));
afterAll(() => rmSync(folder, { recursive: true }));

const problemsOf = (argv: string[], env: Record<string, string>): string => {
  try {
    readConfig(argv, env);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  return 'accepted';
};

describe('configuration', () => {
  test('has defaults for everything except the root key', () => {
    // A name without a value counts as missing.
    const config = readConfig(['all'], { SLUICE_ROOT_KEY_FILE: rootKey, PATH: '/bin', SLUICE_OPS_PORT: undefined });
    expect(config).toMatchObject({
      roles: ['controller', 'ingress', 'dispatcher'],
      redis: { url: 'redis://127.0.0.1:6379' },
      ingressPort: 8080,
      facadePort: 8081,
      opsPort: 9090,
      opsHost: undefined,
      endpoints: { allowedNetworks: [], refusedNetworks: [], allowedPorts: [] },
      logLevel: 'info',
      queueMaxBytes: 1_073_741_824,
      endpointConsentOrigin: undefined,
      trustedProxies: undefined,
      ingressRates: { perAddress: 50_000, perKey: 0, perWorkspace: 0 },
      namespace: undefined,
    });
    expect(config.rootKeys).toEqual({ file: rootKey, keys: [{ name: 'root.key', secret: Buffer.alloc(32, 1) }] });
    expect(Object.isFrozen(config)).toBe(true);
  });

  test('reads lists and numbers', () => {
    const env = {
      SLUICE_ALLOWED_NETWORKS: '127.0.0.0/8, ::1/128',
      SLUICE_REFUSED_NETWORKS: '127.0.0.7, 2001:db8::/96',
      SLUICE_ALLOWED_PORTS: '443, 8443',
      SLUICE_ENDPOINT_CONSENT_ORIGIN: 'events.example.com',
      SLUICE_OPS_HOST: '::1',
      SLUICE_INGRESS_PORT: '0',
      SLUICE_REDIS_URL: 'redis://a:1,redis://b:2',
    };
    expect(readConfig(['ingress'], env)).toMatchObject({
      roles: ['ingress'],
      opsHost: '::1',
      endpoints: {
        allowedNetworks: ['127.0.0.0/8', '::1/128'],
        refusedNetworks: ['127.0.0.7', '2001:db8::/96'],
        allowedPorts: [443, 8443],
      },
      endpointConsentOrigin: 'events.example.com',
      ingressPort: 0,
      rootKeys: undefined,
    });
  });

  test.each([
    ['', undefined],
    ['none', []],
    ['10.0.0.0/8, fd00::/8,192.0.2.7', ['10.0.0.0/8', 'fd00::/8', '192.0.2.7']],
  ])('reads the trusted proxies %j', (text, proxies) => {
    expect(readConfig(['ingress'], { SLUICE_TRUSTED_PROXIES: text }).trustedProxies).toEqual(proxies);
  });

  test('ignores the variables that Kubernetes sets for the Services of a namespace', () => {
    const links = {
      SLUICE_INGRESS_PORT: 'tcp://10.96.3.4:8080',
      SLUICE_INGRESS_SERVICE_HOST: '10.96.3.4',
      SLUICE_INGRESS_SERVICE_PORT: '8080',
      SLUICE_INGRESS_SERVICE_PORT_HTTP: '8080',
      SLUICE_INGRESS_PORT_8080_TCP: 'tcp://10.96.3.4:8080',
      SLUICE_INGRESS_PORT_8080_TCP_PROTO: 'tcp',
      SLUICE_INGRESS_PORT_8080_TCP_PORT: '8080',
      SLUICE_INGRESS_PORT_8080_TCP_ADDR: '10.96.3.4',
      SLUICE_FACADE_PORT: 'tcp://[fd00::1]:443',
      SLUICE_FACADE_SERVICE_HOST: 'fd00::1',
      SLUICE_OPS_PORT: 'udp://10.96.3.5:9090',
      SLUICE_PORT: 'tcp://10.96.3.6:80',
      SLUICE_SERVICE_HOST: '10.96.3.6',
      SLUICE_SERVICE_PORT: '80',
      SLUICE_PORT_80_TCP: 'tcp://10.96.3.6:80',
    };
    expect(readConfig(['ingress'], links)).toEqual(readConfig(['ingress'], {}));
    expect(readConfig(['ingress'], { ...links, SLUICE_INGRESS_PORT: '81' }).ingressPort).toBe(81);
  });

  test('reads the mail server of invitations; the default sender is at its host', () => {
    const url = 'smtps://relay:p%40ss@mail.example';
    expect(readConfig(['ingress'], {}).mail).toBeUndefined();
    expect(readConfig(['ingress'], { SLUICE_SMTP_URL: url }).mail).toEqual({
      server: { host: 'mail.example', port: 465, secure: true, credentials: { user: 'relay', password: 'p@ss' } },
      from: { name: '', address: 'sluice@mail.example' },
      acceptUrl: undefined,
      plainText: false,
    });
    const more = {
      SLUICE_SMTP_FROM: 'Acme <a@b.example>',
      SLUICE_INVITATION_URL: 'https://c.example/invitation',
      SLUICE_SMTP_ALLOW_PLAIN_TEXT: 'true',
    };
    expect(readConfig(['ingress'], { SLUICE_SMTP_URL: url, ...more }).mail).toMatchObject({
      from: { name: 'Acme', address: 'a@b.example' },
      acceptUrl: 'https://c.example/invitation',
      plainText: true,
    });
    expect(problemsOf(['ingress'], { SLUICE_SMTP_ALLOW_PLAIN_TEXT: 'yes' })).toContain('SLUICE_SMTP_ALLOW_PLAIN_TEXT');
  });

  test('only requires the invited address if this is configured', () => {
    const required = (value: string) =>
      readConfig(['ingress'], { SLUICE_INVITATION_REQUIRE_EMAIL: value }).requireInvitedEmail;
    expect(readConfig(['ingress'], {}).requireInvitedEmail).toBe(false);
    expect([required('true'), required('false')]).toEqual([true, false]);
    expect(problemsOf(['ingress'], { SLUICE_INVITATION_REQUIRE_EMAIL: 'yes' })).toContain('must be one of true, false');
  });

  test('serves the reference of the facade unless this is turned off', () => {
    const serves = (value: string) => readConfig(['ingress'], { SLUICE_FACADE_DOCS: value }).servesReference;
    expect(readConfig(['ingress'], {}).servesReference).toBe(true);
    expect([serves('true'), serves('false')]).toEqual([true, false]);
  });

  test.each(['controller', 'dispatcher', 'all'])('the role %s requires a root key', role => {
    expect(problemsOf([role], {})).toContain('SLUICE_ROOT_KEY_FILE: required');
  });

  test.each([
    [
      ['ingress'],
      { SLUICE_REDDIS_URL: 'redis://a' },
      'SLUICE_REDDIS_URL: unknown variable; did you mean SLUICE_REDIS_URL?',
    ],
    [['ingress'], { SLUICE_QUITE_OTHER: '1' }, 'SLUICE_QUITE_OTHER: unknown variable'],
    [['ingress'], { SLUICE_INGRES_PORT: '8080' }, 'SLUICE_INGRES_PORT: unknown variable; did you mean SLUICE_INGRESS'],
    [['ingress'], { SLUICE_SERVICE_HOST: 'sluice.example' }, 'SLUICE_SERVICE_HOST: unknown variable'],
    [['ingress'], { SLUICE_SERVICE_PORT: 'http' }, 'SLUICE_SERVICE_PORT: unknown variable'],
    [['ingress'], { SLUICE_REDIS_URL: 'tcp://10.96.3.4:6379' }, 'SLUICE_REDIS_URL: must be redis://'],
    [['ingress'], { SLUICE_REDIS_URL: 'http://a' }, 'SLUICE_REDIS_URL: must be redis://'],
    [['ingress'], { SLUICE_SMTP_URL: 'http://mail.example' }, 'SLUICE_SMTP_URL: must be smtp://'],
    [['ingress'], { SLUICE_SMTP_FROM: 'a@b.example\r\nBcc: c@d.example' }, 'SLUICE_SMTP_FROM: must be an address'],
    [['ingress'], { SLUICE_INVITATION_URL: 'javascript:alert(1)' }, 'SLUICE_INVITATION_URL: must be an http'],
    [['ingress'], { SLUICE_INVITATION_URL: 'https://a.example/#/x' }, 'SLUICE_INVITATION_URL: must be an http'],
    [['ingress'], { SLUICE_OPS_PORT: '65536' }, 'SLUICE_OPS_PORT: '],
    [['ingress'], { SLUICE_OPS_PORT: 'x' }, 'SLUICE_OPS_PORT: '],
    [['ingress'], { SLUICE_OPS_HOST: 'localhost' }, 'SLUICE_OPS_HOST: must be an IP address of this machine'],
    [['ingress'], { SLUICE_OPS_HOST: '127.0.0.1:9090' }, 'SLUICE_OPS_HOST: must be an IP address of this machine'],
    [['ingress'], { SLUICE_REFUSED_NETWORKS: '10.0.0.0/33' }, 'SLUICE_REFUSED_NETWORKS: must be CIDR networks'],
    [['ingress'], { SLUICE_ALLOWED_PORTS: '0' }, 'SLUICE_ALLOWED_PORTS: must be TCP ports'],
    [['ingress'], { SLUICE_ALLOWED_PORTS: '443,65536' }, 'SLUICE_ALLOWED_PORTS: must be TCP ports'],
    [['ingress'], { SLUICE_ALLOWED_PORTS: 'https' }, 'SLUICE_ALLOWED_PORTS: must be TCP ports'],
    [
      ['ingress'],
      { SLUICE_ENDPOINT_CONSENT_ORIGIN: 'https://events.example.com' },
      'SLUICE_ENDPOINT_CONSENT_ORIGIN: must be a DNS name',
    ],
    [
      ['ingress'],
      { SLUICE_ENDPOINT_CONSENT_ORIGIN: 'localhost' },
      'SLUICE_ENDPOINT_CONSENT_ORIGIN: must be a DNS name',
    ],
    [['ingress'], { SLUICE_LOG_LEVEL: 'loud' }, 'SLUICE_LOG_LEVEL: '],
    [['ingress'], { SLUICE_ALLOWED_NETWORKS: '10.0.0.0/33' }, 'SLUICE_ALLOWED_NETWORKS: must be CIDR networks'],
    ...['10.0.0.0/33', 'proxy.example', 'none, 10.0.0.0/8', '10.0.0.0/8, 0.0.0.0/0', '::/0', 'true', '*'].map(
      proxies =>
        [
          ['ingress'],
          { SLUICE_TRUSTED_PROXIES: proxies },
          'SLUICE_TRUSTED_PROXIES: must be the CIDR networks of your proxies separated by commas, such as 10.0.0.0/8',
        ] as [string[], Record<string, string>, string],
    ),
    [['ingress'], { SLUICE_INGRESS_ADDRESS_LIMIT: '-1' }, 'SLUICE_INGRESS_ADDRESS_LIMIT: must be at least 0'],
    [['ingress'], { SLUICE_INGRESS_KEY_LIMIT: 'many' }, 'SLUICE_INGRESS_KEY_LIMIT: must be a number'],
    ...['', ' ', '0x10', '1Gi', '10 MiB', 'Infinity', '1_000', '1,000'].map(
      limit =>
        [
          ['ingress'],
          { SLUICE_INGRESS_ADDRESS_LIMIT: limit },
          'SLUICE_INGRESS_ADDRESS_LIMIT: must be a number without a unit',
        ] as [string[], Record<string, string>, string],
    ),
    [['ingress'], { SLUICE_OPS_PORT: '' }, 'SLUICE_OPS_PORT: must be a number'],
    [['ingress'], { SLUICE_SHUTDOWN_DELAY_SECONDS: '5s' }, 'SLUICE_SHUTDOWN_DELAY_SECONDS: must be a number'],
    [['ingress'], { SLUICE_REDIS_WAIT_REPLICAS: '' }, 'SLUICE_REDIS_WAIT_REPLICAS: must be a number'],
    [['ingress'], { SLUICE_OIDC_MAX_TOKEN_AGE_SECONDS: '' }, 'SLUICE_OIDC_MAX_TOKEN_AGE_SECONDS: must be a number'],
    [['ingress'], { SLUICE_QUEUE_MAX_BYTES: `1${'0'.repeat(300)}` }, 'SLUICE_QUEUE_MAX_BYTES: must be at most 90071'],
    [['ingress'], { SLUICE_REDIS_USERNAME: '' }, 'SLUICE_REDIS_USERNAME: must not be empty'],
    [
      ['ingress'],
      { SLUICE_INVITATION_URL: `https://${'a'.repeat(500)}` },
      'SLUICE_INVITATION_URL: must have at most 500',
    ],
    ...[
      'activations',
      'activations.sluice.dev',
      'count/activation.sluice.dev',
      'count/workspaces.sluice.dev',
      'pod',
    ].map(
      name =>
        [
          ['ingress'],
          { SLUICE_WORKSPACE_QUOTA: JSON.stringify({ 'count/packages.sluice.dev': 5, [name]: '5' }) },
          `SLUICE_WORKSPACE_QUOTA: ${name} is not the name of a resource that a ResourceQuota can limit`,
        ] as [string[], Record<string, string>, string],
    ),
    [['ingress'], { SLUICE_INGRESS_WORKSPACE_LIMIT: '0.5' }, 'SLUICE_INGRESS_WORKSPACE_LIMIT: must be a whole number'],
    [
      ['dispatcher'],
      { SLUICE_ROOT_KEY_FILE: join(folder, 'short.key') },
      'has 31 bytes, but at least 32 bytes are required',
    ],
    [['dispatcher'], { SLUICE_ROOT_KEY_FILE: join(folder, 'none.key') }, 'ENOENT'],
    [['ingress'], { SLUICE_FACADE_PORT: '-1' }, 'SLUICE_FACADE_PORT: '],
    [['ingress'], { SLUICE_OIDC_ISSUERS: 'login.example.com' }, 'SLUICE_OIDC_ISSUERS: must be https URLs'],
    [['ingress'], { SLUICE_OIDC_ISSUERS: 'http://login.example.com' }, 'SLUICE_OIDC_ISSUERS: must be https URLs'],
    [['ingress'], { SLUICE_OIDC_ISSUERS: 'http://localhost.example.com' }, 'SLUICE_OIDC_ISSUERS: must be https URLs'],
    [['ingress'], { SLUICE_OIDC_ISSUERS: 'http://10.0.0.1' }, 'SLUICE_OIDC_ISSUERS: must be https URLs'],
    [['ingress'], { SLUICE_OIDC_ISSUERS: 'https://a@b.example' }, 'SLUICE_OIDC_ISSUERS: must be https URLs'],
    [['ingress'], { SLUICE_OIDC_ISSUERS: 'https://a.example?b' }, 'SLUICE_OIDC_ISSUERS: must be https URLs'],
    [['ingress'], { SLUICE_OIDC_ISSUERS: 'https://a.example#b' }, 'SLUICE_OIDC_ISSUERS: must be https URLs'],
    [['ingress'], { SLUICE_OIDC_ISSUERS: 'https://a.example https://b.example' }, 'SLUICE_OIDC_ISSUERS: must be'],
    [['ingress'], { SLUICE_OIDC_AUDIENCE: '' }, 'SLUICE_OIDC_AUDIENCE: '],
    [['ingress'], { SLUICE_OIDC_ALGORITHMS: 'HS256' }, 'SLUICE_OIDC_ALGORITHMS: must be one or more of RS256'],
    [['ingress'], { SLUICE_OIDC_ALGORITHMS: 'RS256,none' }, 'SLUICE_OIDC_ALGORITHMS: must be one or more of RS256'],
    [['ingress'], { SLUICE_OIDC_ALGORITHMS: ',' }, 'SLUICE_OIDC_ALGORITHMS: must be one or more of RS256'],
    [['ingress'], { SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: '301' }, 'SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: '],
    [['ingress'], { SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: '-1' }, 'SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: '],
    [['ingress'], { SLUICE_OIDC_CLIENT_CLAIM: 'machine' }, 'SLUICE_OIDC_CLIENT_CLAIM: must be a claim and its value'],
    [['ingress'], { SLUICE_OIDC_CLIENT_CLAIM: 'a=b,=c' }, 'SLUICE_OIDC_CLIENT_CLAIM: must be a claim and its value'],
    [['ingress'], { SLUICE_OIDC_REQUIRE_SCOPES: 'yes' }, 'SLUICE_OIDC_REQUIRE_SCOPES: must be one of true, false'],
    [['ingress'], { SLUICE_OIDC_MAX_TOKEN_AGE_SECONDS: '59' }, 'SLUICE_OIDC_MAX_TOKEN_AGE_SECONDS: must be at least'],
    [['alll'], {}, '"alll" is not a role or command of sluice. Did you mean all?\nusage: sluice controller|facade|'],
    [['unistall'], {}, '"unistall" is not a role or command of sluice. Did you mean uninstall?'],
    [['queue-worker'], {}, '"queue-worker" is not a role or command of sluice\nusage: '],
    [[], {}, 'usage: '],
    [['all', 'now'], { SLUICE_ROOT_KEY_FILE: rootKey }, 'usage: '],
  ])('refuses %j %j with the reason', (argv, env, message) => {
    expect(problemsOf(argv, env as Record<string, string>)).toContain(message);
  });

  const oidc = { SLUICE_OIDC_ISSUERS: 'https://login.example.com/', SLUICE_OIDC_AUDIENCE: 'sluice' };

  test('the facade reports a missing identity provider and a missing root key', () => {
    const all = problemsOf(['facade'], {});
    expect(all).toMatch(
      /SLUICE_ROOT_KEY_FILE: required.*\nSLUICE_OIDC_ISSUERS: required.*\nSLUICE_OIDC_AUDIENCE: required/s,
    );
    const env = { ...oidc, SLUICE_ROOT_KEY_FILE: rootKey };
    expect(problemsOf(['facade'], { ...env, SLUICE_OIDC_AUDIENCE: undefined as never })).toMatch(
      /^SLUICE_OIDC_AUDIENCE: required [^\n]*$/,
    );
    expect(problemsOf(['facade'], { ...env, SLUICE_OIDC_ISSUERS: '' })).toMatch(
      /^SLUICE_OIDC_ISSUERS: required [^\n]*$/,
    );
  });

  test('keeps issuers byte for byte; other settings have defaults', () => {
    const env = { SLUICE_ROOT_KEY_FILE: rootKey, ...oidc };
    expect(readConfig(['facade'], env).oidc).toEqual({
      issuers: ['https://login.example.com/'],
      audience: 'sluice',
      algorithms: ['RS256'],
      clockToleranceSeconds: 30,
      clientClaims: [],
      requireScopes: false,
    });
    const more = {
      ...env,
      SLUICE_OIDC_ISSUERS:
        'https://a.example, http://localhost:9/x,http://127.0.0.1:9,http://[::1]:9,https://a.example',
      SLUICE_OIDC_ALGORITHMS: 'ES256, RS256',
      SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: '0',
      SLUICE_OIDC_CLIENT_CLAIM: 'token_use=machine, https://example.com/id=id={client}',
      SLUICE_OIDC_REQUIRE_SCOPES: 'true',
      SLUICE_OIDC_MAX_TOKEN_AGE_SECONDS: '3600',
    };
    expect(readConfig(['facade'], more).oidc).toEqual({
      issuers: ['https://a.example', 'http://localhost:9/x', 'http://127.0.0.1:9', 'http://[::1]:9'],
      audience: 'sluice',
      algorithms: ['ES256', 'RS256'],
      clockToleranceSeconds: 0,
      clientClaims: [
        { name: 'token_use', value: 'machine' },
        { name: 'https://example.com/id', value: 'id={client}' },
      ],
      requireScopes: true,
      maxAgeSeconds: 3_600,
    });
  });

  test('roles without a facade do not have an identity provider', () => {
    expect(readConfig(['ingress'], oidc).oidc).toBeUndefined();
  });

  test('reports all problems together', () => {
    const problems = problemsOf(['dispatcher'], { SLUICE_OPS_PORT: '-1', SLUICE_LOG_LEVEL: 'x', SLUICE_X: '' });
    expect(problems).toMatch(/SLUICE_X:.*\nSLUICE_OPS_PORT:.*\nSLUICE_LOG_LEVEL:/s);
  });

  test('describes every variable', () => {
    for (const [name, schema] of Object.entries(ENVIRONMENT)) expect(schema.description, name).toMatch(/\.$/);
  });
});
