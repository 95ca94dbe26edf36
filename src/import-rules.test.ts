import { describe, expect, test } from 'vitest';
import { files, importsOf, targetOf, textOf } from './testing/source-files.ts';

/**
 * The allowed imports. Each room is a folder, which lists the rooms and packages it can import. `node:` modules and its
 * own files can always be imported. A room's name with `/*` represents all rooms below that folder. `core` and `api`
 * are pure, so they can only import Node modules that perform calculations.
 */
interface Rule {
  readonly rooms: string;
  readonly packages?: string;
  readonly node?: readonly string[];
}

const PURE = ['node:crypto', 'node:net'];

const RULES: Readonly<Record<string, Rule>> = {
  api: { rooms: '', packages: 'zod', node: [] },
  'api/kinds': { rooms: 'api', packages: 'zod', node: [] },

  'core/ids': { rooms: '', node: PURE },
  'core/problems': { rooms: '', node: PURE },
  'core/limits': { rooms: 'api/kinds', node: [] },
  'core/delivery': { rooms: 'api core/ids', node: PURE },
  'core/events': { rooms: 'api core/ids core/problems core/delivery', node: PURE },
  'core/routing': { rooms: 'api api/kinds core/ids core/limits core/delivery core/events', node: PURE },

  time: { rooms: '' },
  telemetry: {
    rooms: 'time',
    packages: `
      pino prom-client @opentelemetry/api @opentelemetry/resources @opentelemetry/sdk-trace
      @opentelemetry/exporter-trace-otlp-http @opentelemetry/exporter-trace-otlp-proto
    `,
  },
  tls: { rooms: 'telemetry' },
  http: { rooms: 'core/delivery core/problems time telemetry tls', packages: 'fastify' },
  mail: { rooms: 'api core/ids', packages: 'nodemailer' },
  'kube/credentials': { rooms: 'time', packages: '@kubernetes/client-node js-yaml undici' },
  kube: { rooms: 'api api/kinds time telemetry kube/credentials', packages: 'undici' },

  'redis/connection': { rooms: 'time telemetry tls', packages: 'ioredis' },
  redis: { rooms: 'api telemetry redis/connection', packages: 'ioredis' },
  plane: { rooms: 'core/delivery core/events core/routing' },
  hints: { rooms: 'telemetry redis' },
  accounts: { rooms: 'core/events time redis plane hints' },
  idempotency: { rooms: 'core/delivery redis' },
  series: { rooms: 'core/events redis plane' },
  record: {
    rooms: 'api core/delivery core/events core/routing time telemetry redis plane hints accounts series',
  },

  part: { rooms: 'redis' },
  'part/lanes': { rooms: '' },
  'part/records': { rooms: 'part part/lanes' },
  'part/log': { rooms: 'core/ids redis part part/lanes' },
  'part/catchup': { rooms: 'redis part' },
  'part/sweep': { rooms: 'redis part part/lanes' },
  'part/tokens': { rooms: 'time redis part' },
  'part/space': { rooms: 'time redis part part/log part/tokens' },
  'part/stored': { rooms: 'telemetry redis part' },
  'part/gate': { rooms: 'core/delivery core/routing redis plane part' },
  'part/claims': { rooms: 'api redis plane part part/lanes part/records' },
  'part/inbox': { rooms: 'core/ids core/events redis plane part part/lanes part/log' },
  'part/lists': { rooms: '' },
  'part/reasons': { rooms: 'core/events core/routing redis plane series part part/inbox' },
  'part/fate': {
    rooms: 'core/routing redis plane record part part/lanes part/log part/gate part/inbox',
  },
  'part/state': {
    rooms: `
      core/delivery redis plane series record part part/sweep part/tokens part/gate part/claims part/inbox
      part/members
    `,
  },
  'part/members': { rooms: 'redis record part' },
  'part/survey': { rooms: 'time telemetry redis hints part part/members' },
  'part/control': {
    rooms: `
      core/routing time redis plane record part part/lanes part/sweep part/tokens part/gate part/inbox part/state part/space
      part/members
    `,
  },
  'part/owner': {
    rooms: 'core/ids core/events redis plane part part/lanes part/log part/inbox',
  },
  'part/sandbox': {
    rooms: `
      core/delivery redis record part part/lanes part/log part/gate part/inbox part/fate part/state
    `,
  },

  config: {
    rooms: 'api api/kinds core/problems core/limits core/delivery telemetry tls mail redis/connection',
    packages: 'zod',
  },

  'controller/engine': { rooms: 'api time telemetry kube' },
  'controller/caches': { rooms: 'api api/kinds core/ids time telemetry kube controller/engine' },
  'controller/routes': {
    rooms: 'core/ids core/routing time kube redis record controller/engine controller/caches',
  },
  'controller/context': {
    rooms: `
      api api/kinds core/delivery core/limits time telemetry kube record controller/engine controller/caches
      controller/routes
    `,
  },
  'controller/kinds': {
    rooms: `
      api api/kinds core/ids core/delivery core/events core/limits core/routing time telemetry mail kube plane record
      controller/engine controller/caches controller/routes controller/context
    `,
  },
  'controller/audit': {
    rooms: 'core/ids core/routing time telemetry kube redis record controller/*',
  },
  controller: {
    rooms:
      'api/kinds core/ids core/delivery core/limits core/routing time telemetry mail kube redis plane record controller/*',
  },

  'facade/auth': {
    rooms: 'api core/problems time telemetry http',
    packages: 'fastify @fastify/express express-oauth2-jwt-bearer',
  },
  'facade/audit': { rooms: 'api core/ids time telemetry facade/auth' },
  'facade/caches': { rooms: 'api api/kinds core/ids core/problems time telemetry http kube facade/auth' },
  'facade/objects': {
    rooms: `
      facade/audit facade/caches
      api api/kinds core/ids core/delivery core/problems core/limits core/events core/routing time telemetry http
      kube plane accounts idempotency record facade/auth
    `,
  },
  'facade/contract': {
    rooms: 'api core/ids core/problems time telemetry http idempotency facade/audit facade/auth facade/objects',
    packages: 'zod fastify',
  },
  'facade/resources': {
    rooms: 'api api/kinds core/* time http kube plane accounts facade/*',
    packages: 'zod',
  },
  facade: {
    rooms: 'core/problems telemetry tls http plane accounts facade/*',
    packages: `
      zod zod-openapi fastify @fastify/helmet @fastify/swagger @fastify/swagger-ui @fastify/under-pressure
    `,
  },

  'dataplane/ingress': {
    rooms: 'core/ids core/problems core/events time telemetry tls http record',
  },
  'dataplane/ingress/sandbox': {
    rooms: `
      api core/ids core/problems core/delivery core/events time telemetry part/sandbox dataplane/ingress
    `,
  },
  'dataplane/dispatcher/http': { rooms: 'core/delivery time' },
  'dataplane/dispatcher': {
    rooms: 'api core/delivery core/events telemetry http plane hints accounts dataplane dataplane/dispatcher/http',
  },
  'dataplane/parts/claims': {
    rooms: `
      core/ids core/delivery core/events telemetry redis part part/log part/gate part/claims part/inbox dataplane/dispatcher
    `,
  },
  'dataplane/parts': {
    rooms: `
      time telemetry redis/connection redis plane series part part/log part/catchup part/sweep part/stored part/tokens
      part/claims part/members dataplane/dispatcher dataplane/parts/claims
    `,
  },
  'dataplane/sandbox': {
    rooms: `
      api core/delivery core/events core/routing telemetry redis plane hints part part/lanes part/log
      part/catchup part/gate part/claims part/inbox part/fate part/sandbox dataplane/* dataplane
    `,
  },
  dataplane: {
    rooms: 'time telemetry redis hints record part part/log part/space part/stored part/inbox dataplane/ingress',
  },

  commands: {
    rooms: `
      api api/kinds core/ids time telemetry kube redis/connection redis record part/sweep part/inbox config
      controller/engine
    `,
  },
  roles: {
    rooms: `
      core/ids core/delivery time telemetry tls http mail kube redis/connection redis plane hints accounts series
      idempotency record part part/* config controller facade/auth facade/audit facade/caches facade/objects facade/resources
      facade dataplane/* dataplane
    `,
  },
};

/**
 * Files outside of the rooms: the entry point of the program, and the files required before it loads all other modules.
 */
const OUTSIDE = ['sluice.ts', 'main.ts', 'node-flags.ts', 'shutdown.ts', 'usage.ts'];

function roomOf(file: string): string | undefined {
  return Object.keys(RULES)
    .filter(room => file.startsWith(`${room}/`))
    .toSorted((a, b) => b.length - a.length)[0];
}

function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter(word => word !== '');
}

/** Returns room names, replacing `/*` with the rooms that it represents. */
function withBelow(names: readonly string[]): string[] {
  return names.flatMap(name =>
    name.endsWith('/*') ? Object.keys(RULES).filter(room => room.startsWith(name.slice(0, -1))) : [name],
  );
}

function ownerOf(name: string): string {
  return name.split('/', name.startsWith('@') ? 2 : 1).join('/');
}

describe('import rules', () => {
  test('every file belongs to a room or is one of the few exceptions', () => {
    expect(files.filter(file => roomOf(file) === undefined && !OUTSIDE.includes(file))).toEqual([]);
    expect(files.length).toBeGreaterThan(80);
  });

  test.each(files.filter(file => roomOf(file) !== undefined))('%s', file => {
    const room = roomOf(file) as string;
    const { rooms, packages = '', node } = RULES[room] as Rule;
    const mayImport = [room, ...withBelow(wordsOf(rooms))];
    for (const name of importsOf(file)) {
      if (name.startsWith('node:')) {
        if (node !== undefined) expect(node, `${file} imports ${name}`).toContain(name);
      } else if (name === '../../package.json') {
        expect(file).toBe('config/version.ts');
      } else if (name.startsWith('.')) {
        const target = targetOf(file, name);
        const other = roomOf(target);
        expect(mayImport, `${file} imports ${target}`).toContain(other);
      } else {
        expect(wordsOf(packages), `${file} imports ${name}`).toContain(ownerOf(name));
      }
    }
  });

  test.each(Object.entries(RULES))(
    '%s only lists rooms and packages that it uses',
    (room, { rooms, packages = '' }) => {
      const names = files
        .filter(file => roomOf(file) === room)
        .flatMap(file => importsOf(file).map(name => [file, name]));
      const used = names.map(([file = '', name = '']) =>
        name.startsWith('.') ? roomOf(targetOf(file, name)) : ownerOf(name),
      );
      expect(
        wordsOf(`${rooms} ${packages}`).filter(name => !withBelow([name]).some(each => used.includes(each))),
      ).toEqual([]);
    },
  );

  test('only types are imported from node:http, because an import also loads the WebSocket client of Node', () => {
    expect(files.filter(file => /import (?!type )[^;]*from 'node:http';/.test(textOf(file)))).toEqual([]);
  });

  test('rooms do not import each other in both directions', () => {
    const arrows = new Set<string>();
    for (const file of files) {
      for (const name of importsOf(file).filter(each => each.startsWith('.'))) {
        const other = roomOf(targetOf(file, name));
        if (roomOf(file) !== undefined && other !== undefined) arrows.add(`${roomOf(file)} and ${other}`);
      }
    }
    const back = [...arrows].filter(arrow => {
      const [from, to] = arrow.split(' and ');
      return from !== to && String(from) < String(to) && arrows.has(`${to} and ${from}`);
    });
    expect(back).toEqual([]);
  });
});
