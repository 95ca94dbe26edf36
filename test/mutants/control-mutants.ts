import { type Mutant, mutantsWithTest } from './mutant.ts';

const CONTROLLER = 'src/controller/';
const LEADERSHIP = `${CONTROLLER}leadership.test.ts`;
const SUBSCRIPTION = `${CONTROLLER}kinds/subscription/`;
const ACTIVATION = `${CONTROLLER}kinds/activation/`;

/** Mutants of the code that starts and ends terms, writes statuses, and removes what nobody needs. */
export const CONTROL_MUTANTS: readonly Mutant[] = [
  ...mutantsWithTest(`${CONTROLLER}epoch-claim.ts`, LEADERSHIP, [
    ['a term that has ended claims an epoch', 'waiting);\n  over.throwIfAborted();', 'waiting);'],
    ['a term that has ended uses its epoch', '    });\n  over.throwIfAborted();', '    });'],
  ]),
  ...mutantsWithTest(`${CONTROLLER}term.ts`, LEADERSHIP, [
    ['a term writes to Redis after it has lost its data', 'state.held !== undefined || state.epoch', 'state.epoch'],
    [
      'a term that has ended writes to Redis',
      'current.term.signal.aborted ? undefined : current',
      'false ? undefined : current',
    ],
  ]),
  ...mutantsWithTest(`${CONTROLLER}leadership.ts`, LEADERSHIP, [
    [
      'routes that were lost while disconnecting are not restored',
      "      tenants.forget('all');\n      enqueueAll();",
      '      enqueueAll();',
    ],
    [
      'the plans of accounts are not restored',
      "    for (const name of caches.Account.store.keys()) deps.controllers.enqueue('account', name, 'background');\n",
      '',
    ],
  ]),
  ...mutantsWithTest(`${CONTROLLER}engine/lease-hold.ts`, `${CONTROLLER}engine/elector.test.ts`, [
    ['the deadline of a leader starts with the response', '    renewedMs = sentMs;', '    renewedMs = clock.nowMs();'],
    ['the clock of the holder is trusted', 'lease.spec) ? before.atMs : nowMs', 'lease.spec) ? nowMs : nowMs'],
  ]),
  ...mutantsWithTest(`${CONTROLLER}engine/status-writer.ts`, `${CONTROLLER}engine/status-writer.kube.test.ts`, [
    [
      'a condition that another manager has just added is removed',
      '{ resourceVersion }, status: leftovers',
      '{}, status: leftovers',
    ],
  ]),
  ...mutantsWithTest(`${CONTROLLER}audit/orphan-removal.ts`, `${CONTROLLER}audit/orphan-parts.redis.test.ts`, [
    ['an integration is removed before the events of its inboxes', 'if (used.has(integration)) continue;', ''],
  ]),
  ...mutantsWithTest(`${ACTIVATION}removal.ts`, `${ACTIVATION}removal.test.ts`, [
    [
      'a revoked Activation that is kept in Git is removed',
      ' && writers.every(({ manager }) => manager === FIELD_MANAGER.facade)',
      '',
    ],
    [
      'an Activation that was activated again is removed',
      '{ uid, resourceVersion })) removed++',
      '{ uid })) removed++',
    ],
  ]),
  ...mutantsWithTest(`${SUBSCRIPTION}plan.ts`, `${SUBSCRIPTION}plan.test.ts`, [
    [
      'a Secret that was refused waits for the next warning',
      'Math.min(warningMs ?? MIRROR_RETRY_MS, MIRROR_RETRY_MS)',
      'warningMs ?? MIRROR_RETRY_MS',
    ],
    [
      'the previous secret of an earlier version has no root key',
      '(signing.version ?? 1) > 1 ? { previousKey: signing.previousKey ?? oldestKey } : {}',
      '{}',
    ],
  ]),
  ...mutantsWithTest(`${SUBSCRIPTION}endpoint-condition.ts`, `${SUBSCRIPTION}endpoint-condition.test.ts`, [
    [
      'older data of Redis replaces the time at which an endpoint was disabled',
      '(recordedMs === undefined || found.ms > recordedMs)',
      'found !== recordedMs',
    ],
  ]),
  ...mutantsWithTest(`${SUBSCRIPTION}signing-secret.ts`, `${SUBSCRIPTION}signing-secret.test.ts`, [
    ['a signing secret belongs to another Subscription', ' && mirror.owner === name', ''],
  ]),
  ...mutantsWithTest(`${ACTIVATION}reconcile.ts`, `${ACTIVATION}reconcile.test.ts`, [
    [
      'a group key is opened although its workspace was paused meanwhile',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the text of the source.
      '  if (open && isPaused(caches, namespace)) throw cacheBehind(`the pause of ${namespace}`);\n',
      '',
    ],
    [
      'a group key is opened although its integration was deleted meanwhile',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the text of the source.
      ' && caches.Integration.store.get(`${namespace}/${integration}`) !== undefined;',
      ';',
    ],
  ]),
  ...mutantsWithTest(`${CONTROLLER}engine/elector.ts`, `${CONTROLLER}engine/elector.test.ts`, [
    [
      'a leader continues after its deadline until a renewal has a response',
      'Math.min(renewDeadlineMs / 2, hold.leftMs())',
      'renewDeadlineMs / 2',
    ],
  ]),
  ...mutantsWithTest('src/facade/contract/repeated-calls.ts', 'src/facade/contract/repeated-calls.test.ts', [
    [
      'a call that may have had an effect is performed again as a new one',
      'PROBLEMS[error.code].status < 500',
      'PROBLEMS[error.code].status < 600',
    ],
    ['a stored response is returned to another caller', '[callerKey(identity), params,', '[params,'],
  ]),
  ...mutantsWithTest(`${CONTROLLER}engine/lease-hold.ts`, `${CONTROLLER}engine/elector.test.ts`, [
    ['an expired Lease is released', 'if (leftMs() > 0) await', 'await'],
  ]),
  ...mutantsWithTest(`${SUBSCRIPTION}backlog-watch.ts`, `${SUBSCRIPTION}backlog-watch.test.ts`, [
    [
      'an event that was waiting before the first check is at risk too late',
      '{ notBeforeMs, settledTo, atRisk }',
      '{ notBeforeMs: nowMs, settledTo, atRisk }',
    ],
    ['a backlog stays at risk although the retention is longer', ' && !last.atRisk', ''],
    ['a new leader reads all backlogs at once', '        if (dueMs === undefined) continue;\n', ''],
    ['each check of a long inbox starts from the beginning', "last?.settledTo ?? '0-0'", "'0-0'"],
  ]),
  ...mutantsWithTest(`${SUBSCRIPTION}oldest-waiting.ts`, `${SUBSCRIPTION}backlog-watch.test.ts`, [
    ['a delivered event is at risk', 'open.exact ? openMs : nowMs', 'openMs'],
  ]),
  ...mutantsWithTest('src/telemetry/role-health.ts', 'src/telemetry/role-health.test.ts', [
    ['a role is ready before it has worked', 'ready: worked && ', 'ready: '],
  ]),
];
