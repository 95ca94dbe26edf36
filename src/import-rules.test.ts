import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

/**
 * Who may import whom: the layers of the architecture. Each room names the rooms and packages that it may import;
 * node: modules and its own files are free. `core` and `api` are pure: of Node they may import what computes.
 */
const RULES: Readonly<
  Record<string, { rooms: readonly string[]; packages: readonly string[]; node?: readonly string[] }>
> = {
  api: { rooms: [], packages: ['zod'], node: [] },
  core: { rooms: ['api'], packages: [], node: ['node:crypto', 'node:net'] },
  telemetry: {
    rooms: [],
    packages: [
      'pino',
      'prom-client',
      '@opentelemetry/api',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-trace',
      '@opentelemetry/exporter-trace-otlp-http',
      '@opentelemetry/exporter-trace-otlp-proto',
    ],
  },
  http: { rooms: ['core', 'telemetry'], packages: ['fastify'] },
  redis: { rooms: ['api', 'core', 'telemetry'], packages: ['ioredis'] },
  kube: { rooms: ['api', 'telemetry'], packages: ['@kubernetes/client-node', 'undici'] },
  mail: { rooms: ['api', 'core'], packages: ['nodemailer'] },
  controller: { rooms: ['api', 'core', 'redis', 'kube', 'mail', 'telemetry'], packages: [] },
  'dataplane/ingress': { rooms: ['api', 'core', 'http', 'redis', 'telemetry'], packages: ['fastify'] },
  'facade/auth': {
    rooms: ['api', 'core', 'facade', 'http', 'telemetry'],
    packages: ['fastify', '@fastify/express', 'express', 'express-oauth2-jwt-bearer'],
  },
  facade: {
    rooms: ['api', 'core', 'http', 'kube', 'redis', 'telemetry', 'facade/auth'],
    packages: [
      'zod',
      'zod-openapi',
      'fastify',
      '@fastify/helmet',
      '@fastify/rate-limit',
      '@fastify/swagger',
      '@fastify/swagger-ui',
      '@fastify/under-pressure',
    ],
  },
  'dataplane/dispatcher': { rooms: ['api', 'core', 'redis', 'telemetry', 'dataplane'], packages: ['undici'] },
  'dataplane/router': { rooms: ['api', 'core', 'redis', 'telemetry', 'dataplane'], packages: [] },
  'dataplane/sandbox': {
    rooms: [
      'api',
      'core',
      'redis',
      'telemetry',
      'dataplane',
      'dataplane/dispatcher',
      'dataplane/ingress',
      'dataplane/router',
    ],
    packages: [],
  },
  dataplane: { rooms: ['api', 'core', 'redis', 'telemetry', 'dataplane/ingress', 'dataplane/router'], packages: [] },
};
/** The files beside the rooms: what knows everything, and what they need. */
const OUTSIDE = [
  'sluice.ts',
  'main.ts',
  'roles.ts',
  'role-parts.ts',
  'config.ts',
  'listening.ts',
  'node-flags.ts',
  'root-key-file.ts',
  'service-links.ts',
  'shutdown.ts',
  'tracing-environment.ts',
  'usage.ts',
  'environment-messages.ts',
  'version.ts',
];

const root = new URL('./', import.meta.url);
const files = globSync('**/*.ts', { cwd: root }).filter(file => !/\.test\.ts$|(^|\/)testing\//.test(file));

function roomOf(file: string): string | undefined {
  return Object.keys(RULES)
    .filter(room => file.startsWith(`${room}/`))
    .toSorted((a, b) => b.length - a.length)[0];
}

function importsOf(file: string): string[] {
  const text = readFileSync(new URL(file, root), 'utf8');
  return [
    ...text.matchAll(/(?:^|\n)\s*(?:import|export)\s[^;'"]*?from\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g),
  ].map(match => (match[1] ?? match[2]) as string);
}

describe('import rules', () => {
  test('every file belongs to a room or is one of the few outside', () => {
    expect(files.filter(file => roomOf(file) === undefined && !OUTSIDE.includes(file))).toEqual([]);
    expect(files.length).toBeGreaterThan(80);
  });

  test.each(files.filter(file => roomOf(file) !== undefined))('%s', file => {
    const room = roomOf(file) as string;
    const { rooms, packages, node } = RULES[room] as (typeof RULES)[string];
    for (const name of importsOf(file)) {
      if (name.startsWith('node:')) {
        if (node !== undefined) expect(node, `${file} imports ${name}`).toContain(name);
      } else if (name.startsWith('.')) {
        const target = new URL(name, new URL(file, root)).pathname.slice(root.pathname.length);
        const other = roomOf(target);
        expect([room, ...rooms], `${file} imports ${target}`).toContain(other);
      } else {
        const owner = name.startsWith('@') ? name.split('/').slice(0, 2).join('/') : name.split('/')[0];
        expect(packages, `${file} imports ${name}`).toContain(owner);
      }
    }
  });

  test('the facade reads the data plane, and changes only inboxes', () => {
    const used = files
      .filter(file => file.startsWith('facade/'))
      .flatMap(importsOf)
      .flatMap(name => /(?:^|\/)redis\/([\w-]+)\.ts$/.exec(name)?.[1] ?? []);
    const reads = [
      'gate-reader',
      'inbox-reader',
      'inbox-store',
      'ledger-store',
      'replay-prices',
      'routing-reader',
      'traffic-reader',
    ];
    const writes = ['inbox-operations', 'inbox-recovery', 'replays'];
    expect([...reads, ...writes]).toEqual(expect.arrayContaining([...new Set(used)]));
  });

  test('OpenTelemetry is loaded by main.ts alone, and only once tracing is on', () => {
    const users = files.filter(file => importsOf(file).some(name => name.startsWith('@opentelemetry/')));
    expect(users).toEqual(['telemetry/tracing-sdk.ts']);
    const mentions = files.filter(file => readFileSync(new URL(file, root), 'utf8').includes('tracing-sdk.ts'));
    expect(mentions).toEqual(['main.ts']);
    const main = readFileSync(new URL('main.ts', root), 'utf8');
    expect(main).not.toMatch(/from '[^']*tracing-sdk/);
    expect(main).toMatch(/config\.tracing &&\s+\(await \(await import\('\.\/telemetry\/tracing-sdk\.ts'/);
  });

  test('only config.ts reads the environment', () => {
    const readers = files.filter(file => /process\.env\b/.test(readFileSync(new URL(file, root), 'utf8')));
    // The entry reads NODE_OPTIONS, which is Node's own.
    expect(readers).toEqual(['main.ts', 'sluice.ts']);
  });
});
