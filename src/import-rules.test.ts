import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

/**
 * Who may import whom. Each room is a folder; it names the rooms and packages that it may import, `node:` modules and its own
 * files are free. A room's name with `/*` stands for all rooms below that folder. `core` and `api` are pure: of Node they may
 * import what computes.
 */
interface Rule {
  readonly rooms: readonly string[];
  readonly packages?: readonly string[];
  readonly node?: readonly string[];
}

const PURE = ['node:crypto', 'node:net'];
const CONTROLLER = ['api', 'api/kinds', 'core/*', 'time', 'redis', 'kube', 'telemetry'];
const RESOURCE = ['api', 'api/kinds', 'core/*', 'time', 'http', 'kube', 'redis', 'facade/auth', 'facade/objects'];
const DATA_PLANE = ['api', 'core/*', 'time', 'redis', 'telemetry'];

const RULES: Readonly<Record<string, Rule>> = {
  api: { rooms: [], packages: ['zod'], node: [] },
  'api/kinds': { rooms: ['api'], packages: ['zod'], node: [] },

  'core/ids': { rooms: ['api'], node: PURE },
  'core/problems': { rooms: ['api'], node: PURE },
  'core/delivery': { rooms: ['api', 'core/ids'], node: PURE },
  'core/events': { rooms: ['api', 'core/ids', 'core/problems', 'core/delivery'], node: PURE },
  'core/routing': { rooms: ['api', 'api/kinds', 'core/ids', 'core/delivery', 'core/events'], node: PURE },

  time: { rooms: [] },
  telemetry: {
    rooms: ['time'],
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
  tls: { rooms: ['telemetry', 'time'] },
  http: { rooms: ['core/problems', 'telemetry', 'tls'], packages: ['fastify'] },
  mail: { rooms: ['api', 'core/ids'], packages: ['nodemailer'] },
  'kube/credentials': { rooms: [], packages: ['@kubernetes/client-node', 'js-yaml', 'undici'] },
  kube: { rooms: ['api', 'api/kinds', 'time', 'telemetry', 'kube/credentials'], packages: ['undici'] },
  redis: { rooms: ['api', 'core/*', 'time', 'telemetry', 'tls'], packages: ['ioredis'] },
  part: { rooms: ['redis'] },
  'part/lanes': { rooms: [] },
  'part/records': { rooms: ['part', 'part/lanes'] },
  'part/log': { rooms: ['core/ids', 'redis', 'part', 'part/lanes'] },
  'part/catchup': { rooms: ['redis', 'part'] },
  'part/sweep': { rooms: ['redis', 'part', 'part/lanes'] },
  'part/tokens': { rooms: ['redis', 'part'] },
  'part/gate': { rooms: ['core/delivery', 'redis', 'part'] },
  'part/claims': { rooms: ['api', 'redis', 'part', 'part/lanes', 'part/records'] },
  'part/inbox': { rooms: ['core/events', 'core/ids', 'redis', 'part', 'part/lanes', 'part/log'] },
  'part/lists': { rooms: [] },
  'part/reasons': { rooms: ['core/events', 'core/routing', 'redis', 'part', 'part/inbox'] },
  'part/fate': {
    rooms: [
      'core/delivery',
      'core/routing',
      'redis',
      'part',
      'part/inbox',
      'part/lanes',
      'part/log',
      'part/gate',
      'part/state',
    ],
  },
  'part/state': {
    rooms: [
      'core/delivery',
      'redis',
      'part',
      'part/claims',
      'part/gate',
      'part/inbox',
      'part/members',
      'part/sweep',
      'part/tokens',
    ],
  },
  'part/members': { rooms: ['redis', 'part'] },
  'part/survey': { rooms: ['time', 'telemetry', 'redis', 'part', 'part/members'] },
  'part/control': {
    rooms: [
      'core/routing',
      'redis',
      'part',
      'part/gate',
      'part/inbox',
      'part/lanes',
      'part/members',
      'part/state',
      'part/sweep',
      'part/tokens',
    ],
  },
  'part/owner': { rooms: ['core/events', 'core/ids', 'redis', 'part', 'part/inbox', 'part/lanes', 'part/log'] },
  config: { rooms: ['api', 'core/delivery', 'core/problems', 'mail', 'redis', 'telemetry', 'tls'], packages: ['zod'] },

  'controller/engine': { rooms: ['api', 'kube', 'time', 'telemetry'] },
  'controller/caches': { rooms: [...CONTROLLER, 'controller/engine'] },
  'controller/routes': { rooms: [...CONTROLLER, 'controller/engine', 'controller/caches'] },
  'controller/context': { rooms: [...CONTROLLER, 'controller/engine', 'controller/caches', 'controller/routes'] },
  'controller/kinds': {
    rooms: [...CONTROLLER, 'mail', 'controller/engine', 'controller/caches', 'controller/routes', 'controller/context'],
  },
  'controller/audit': {
    rooms: [
      ...CONTROLLER,
      'controller/engine',
      'controller/caches',
      'controller/routes',
      'controller/context',
      'controller/kinds',
    ],
  },
  controller: { rooms: [...CONTROLLER, 'mail', 'controller/*'] },

  'facade/auth': {
    rooms: ['api', 'core/problems', 'http', 'telemetry'],
    packages: ['fastify', '@fastify/express', 'express', 'express-oauth2-jwt-bearer'],
  },
  'facade/objects': {
    rooms: ['api', 'api/kinds', 'core/*', 'time', 'http', 'kube', 'redis', 'telemetry', 'facade/auth'],
  },
  'facade/contract': {
    rooms: ['api', 'core/ids', 'core/problems', 'time', 'http', 'telemetry', 'facade/auth', 'facade/objects'],
    packages: ['zod', 'fastify'],
  },
  'facade/resources': { rooms: [...RESOURCE, 'telemetry', 'facade/contract'], packages: ['zod'] },
  facade: {
    rooms: ['core/*', 'http', 'redis', 'telemetry', 'tls', 'facade/*'],
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

  'dataplane/ingress': { rooms: [...DATA_PLANE, 'http', 'tls'], packages: ['fastify'] },
  'dataplane/dispatcher': { rooms: [...DATA_PLANE, 'dataplane'], packages: ['undici'] },
  'dataplane/parts': { rooms: [...DATA_PLANE, 'dataplane/dispatcher', 'part', 'part/*'] },
  'dataplane/router': { rooms: [...DATA_PLANE, 'dataplane'] },
  'dataplane/sandbox': { rooms: [...DATA_PLANE, 'dataplane', 'dataplane/*'] },
  dataplane: {
    rooms: [...DATA_PLANE, 'dataplane/ingress', 'dataplane/router', 'part', 'part/inbox', 'part/log'],
  },

  commands: {
    rooms: ['api', 'api/kinds', 'config', 'controller/engine', 'core/ids', 'kube', 'redis', 'telemetry', 'time'],
  },
  roles: {
    rooms: [
      'config',
      'core/delivery',
      'core/ids',
      'time',
      'telemetry',
      'tls',
      'mail',
      'kube',
      'redis',
      'controller',
      'facade',
      'facade/objects',
      'dataplane',
      'dataplane/*',
      'part',
      'part/*',
    ],
  },
};

/** Rooms that import each other. The data plane is the last that has such a pair. */
const TWO_WAY = ['dataplane and dataplane/router'];

/** The files beside the rooms: the program's entry, and what it needs before it loads the rest. */
const OUTSIDE = ['sluice.ts', 'main.ts', 'node-flags.ts', 'shutdown.ts', 'usage.ts'];

const root = new URL('./', import.meta.url);
const files = globSync('**/*.ts', { cwd: root }).filter(file => !/\.test\.ts$|(^|\/)testing\//.test(file));

function roomOf(file: string): string | undefined {
  return Object.keys(RULES)
    .filter(room => file.startsWith(`${room}/`))
    .toSorted((a, b) => b.length - a.length)[0];
}

/** Room names, with those that `/*` stands for. */
function withBelow(names: readonly string[]): string[] {
  return names.flatMap(name =>
    name.endsWith('/*') ? Object.keys(RULES).filter(room => room.startsWith(name.slice(0, -1))) : [name],
  );
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
    const { rooms, packages = [], node } = RULES[room] as Rule;
    for (const name of importsOf(file)) {
      if (name.startsWith('node:')) {
        if (node !== undefined) expect(node, `${file} imports ${name}`).toContain(name);
      } else if (name === '../../package.json') {
        expect(file).toBe('config/version.ts');
      } else if (name.startsWith('.')) {
        const target = new URL(name, new URL(file, root)).pathname.slice(root.pathname.length);
        const other = roomOf(target);
        expect([room, ...withBelow(rooms)], `${file} imports ${target}`).toContain(other);
      } else {
        const owner = name.startsWith('@') ? name.split('/').slice(0, 2).join('/') : name.split('/')[0];
        expect(packages, `${file} imports ${name}`).toContain(owner);
      }
    }
  });

  test('no two rooms import each other', () => {
    const arrows = new Set<string>();
    for (const file of files) {
      for (const name of importsOf(file).filter(each => each.startsWith('.'))) {
        const other = roomOf(new URL(name, new URL(file, root)).pathname.slice(root.pathname.length));
        if (roomOf(file) !== undefined && other !== undefined) arrows.add(`${roomOf(file)} and ${other}`);
      }
    }
    const back = [...arrows].filter(arrow => {
      const [from, to] = arrow.split(' and ');
      return from !== to && String(from) < String(to) && arrows.has(`${to} and ${from}`);
    });
    expect(back).toEqual(TWO_WAY);
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

  test('every dynamic import names its module, so that these rules see it', () => {
    for (const file of files) {
      const text = readFileSync(new URL(file, root), 'utf8').replaceAll(/^ *(?:\/\/|\/?\*).*$/gm, '');
      const named = [...text.matchAll(/\bimport\(\s*['"][^'"]+['"]\s*[,)]/g)];
      expect(named, file).toHaveLength([...text.matchAll(/\bimport\s*\(|\brequire\s*\(|\bcreateRequire\b/g)].length);
    }
  });

  test('only config.ts reads the environment', () => {
    const readers = files.filter(file => /process\.env\b/.test(readFileSync(new URL(file, root), 'utf8')));
    // The entry reads NODE_OPTIONS, which is Node's own.
    expect(readers).toEqual(['main.ts', 'sluice.ts']);
  });
});
