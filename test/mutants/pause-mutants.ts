import { type Mutant, mutantsWithTest } from './mutant.ts';

const CONTROLLER = 'src/controller/';
const TENANTS = `${CONTROLLER}routes/tenants.test.ts`;
const CLOSE_ROUTES = 'src/core/routing/close-routes';
const WAIT = 'src/facade/objects/wait';

/** Mutants of the code that closes routes and ingress keys while a workspace is paused, and does not open anything. */
export const PAUSE_MUTANTS: readonly Mutant[] = [
  ...mutantsWithTest(`${CONTROLLER}context/paused.ts`, `${CONTROLLER}context/paused.test.ts`, [
    ['a pause is shown before everything is closed', 'if (!isJudged(object)) await untilClosed(object);', ''],
    ['a change that was applied before the pause is closed again', 'if (!isJudged(object)) await', 'await'],
    ['a deletion never ends during a pause', 'context.stuckForMs(object) < FINALIZER_TIMEOUT_MS', 'true'],
    ['undelivered events are lost during a pause', ' || (await holdsData(object))', ''],
  ]),
  ...mutantsWithTest(`${CONTROLLER}routes/closing.ts`, TENANTS, [
    [
      'ingress keys in Secrets are closed before they are known',
      'knowsKeys ? snapshot : withoutWorkspace(snapshot)',
      'snapshot',
    ],
    [
      'a Workspace counts as closed before its ingress keys are known',
      '.filter(object => knowsKeys || object.metadata.namespace !== undefined)',
      '',
    ],
  ]),
  ...mutantsWithTest(`${CONTROLLER}routes/sync.ts`, TENANTS, [
    ['routes that were compiled before a pause are written', "  if (deps.isPaused(name)) return 'paused';\n", ''],
    [
      'routes are compiled after a pause has begun',
      'if (isPaused()) return closeTenant(deps, tenant);\n  tenant.closing',
      'tenant.closing',
    ],
  ]),
  ...mutantsWithTest(`${CLOSE_ROUTES}.ts`, `${CLOSE_ROUTES}.test.ts`, [
    ['a removed ingress key stays open during a pause', 'if (wants === undefined) continue;', ''],
    ['an ingress key is extended during a pause', 'untilMs(wants) < untilMs(until) ? wants : until', 'wants'],
    ['all ingress keys of an unknown workspace are closed', 'if (snapshot.workspace === undefined) return stored;', ''],
  ]),
  ...mutantsWithTest(`${WAIT}.ts`, `${WAIT}.test.ts`, [
    [
      'a call waits although its workspace is paused',
      "if (reason === READY.WorkspacePaused && isNew) return reject(new Refusal('workspace_paused', PAUSED_MEANWHILE));",
      '',
    ],
    [
      'a call is refused because of a pause that has ended',
      'reason === READY.WorkspacePaused && isNew',
      'reason === READY.WorkspacePaused',
    ],
    [
      'a call that closes something is refused during a pause',
      "if (unlessReady === 'closed' && reason !== undefined && CLOSED_AS_WELL.has(reason)) return resolve(object);",
      '',
    ],
    [
      'a call that closes something is refused while the namespace is not adopted',
      '  READY.NamespaceNotAdopted,\n',
      '',
    ],
  ]),
];
