import { type Mutant, mutantsWithTest } from './mutant.ts';

const CONTRACT = 'src/facade/contract/';
const CACHES = 'src/facade/caches/';
const OBJECTS = 'src/facade/objects/';
const SANDBOX = 'src/dataplane/ingress/sandbox/';
const RESOURCES = 'src/facade/resources/';
const LISTS = `${RESOURCES}lists.test.ts`;
const INGRESS_KEYS = `${RESOURCES}workspaces/ingress-key-list`;
const STAYING = '      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)\n';

/** Mutants of the code that reads and changes resources for the REST API. */
export const REST_MUTANTS: readonly Mutant[] = [
  ...mutantsWithTest(`${RESOURCES}streams/streams.ts`, LISTS, [
    ['a stream that is being deleted is listed', STAYING, ''],
    ['deprecated streams are listed by default', "const { status = 'Published' }", "const { status = 'all' }"],
  ]),
  ...mutantsWithTest(`${RESOURCES}packages/packages.ts`, LISTS, [
    ['a package that is being deleted is listed', STAYING, ''],
    ['archived packages are listed by default', "const { status = 'Active' }", "const { status = 'all' }"],
  ]),
  ...mutantsWithTest(`${RESOURCES}integrations/integrations.ts`, LISTS, [
    ['an integration that is being deleted is listed', 'integration.metadata.deletionTimestamp === undefined &&', ''],
  ]),
  ...mutantsWithTest(`${RESOURCES}subscriptions/partner-catalog.ts`, LISTS, [
    [
      'a partner can see all deprecated streams',
      '(spec.public === true || subscriptions.has(metadata.name))',
      'subscriptions !== undefined',
    ],
    ['a Subscription in a workspace without a grant is listed', 'metadata.namespace === recipient.name && ', ''],
  ]),
  ...mutantsWithTest(`${INGRESS_KEYS}.ts`, `${INGRESS_KEYS}.test.ts`, [
    ['keys of other managers do not use the limit', 'ingressKeys.length >= MOST_KEYS', 'own.length >= MOST_KEYS'],
    [
      'a key replaces a key with the same id',
      "    if (ingressKeys.some(({ id }) => id === key.id)) throw new Refusal('ingress_key_exists');\n",
      '',
    ],
    ['a new key removes all others', 'return [...own, key];', 'return [key];'],
    [
      'a key that another manager keeps counts as deleted',
      "  if (left.spec.ingressKeys?.some(key => key.id === id)) throw managed(id, managersOfItem(left, 'ingressKeys', id));\n",
      '',
    ],
    [
      'a workspace that is being deleted gets a key',
      ' || before.metadata.deletionTimestamp !== undefined) throw',
      ') throw',
    ],
  ]),
  ...mutantsWithTest(`${CONTRACT}validate.ts`, `${CONTRACT}validate.test.ts`, [
    ['the pointer of a field with a slash leads to another field', ".replaceAll('~', '~0').replaceAll('/', '~1')", ''],
  ]),
  ...mutantsWithTest(`${CONTRACT}error-handler.ts`, `${CONTRACT}error-handler.test.ts`, [
    [
      'a response contains an unexpected error',
      "    sendProblem(reply, 'internal');",
      "    sendProblem(reply, 'internal', { detail: error.message });",
    ],
    ['each refused call is logged', 'PROBLEMS[error.code].status >= 500', 'PROBLEMS[error.code].status >= 400'],
    [
      'an invalid body is a failure of the server',
      "if (error.statusCode !== undefined && error.statusCode < 500) return sendProblem(reply, 'malformed_request');",
      '',
    ],
    [
      'a body that is too large is compared with another limit',
      'request.routeOptions.bodyLimit ?? BODY_BYTES',
      'BODY_BYTES',
    ],
  ]),
  ...mutantsWithTest(`${CONTRACT}waiting-calls.ts`, `${CONTRACT}waiting-calls.test.ts`, [
    ['calls that do not wait are limited', 'if (waitSeconds === 0) return poll(options.signal);', ''],
    ['a stopping server waits for events', 'AbortSignal.any([options.signal, closing])', 'options.signal'],
  ]),
  ...mutantsWithTest(`${CONTRACT}repeated-calls.ts`, `${CONTRACT}repeated-calls.test.ts`, [
    ['an Idempotency-Key can have any length', '{1,255}', '{1,}'],
  ]),
  ...mutantsWithTest(`${OBJECTS}resource-writer.ts`, `${OBJECTS}resource-writer.test.ts`, [
    ['a write changes a new object with the same name', ': { uid };', ': {};'],
    ['a write that depends on a version changes another one', 'exactly ? { uid, resourceVersion }', 'false ? {}'],
    ['a write changes an object that was created in the meantime', '? MUST_NOT_EXIST', '? {}'],
    [
      'an object that was created in the meantime is reported as an invalid field',
      "throw new Refusal('changed_meanwhile');\n    }",
      'throw refusal;\n    }',
    ],
    ['an object that was changed since its creation counts as created', 'present.metadata.generation === 1 && ', ''],
    ['a new object with the same name is deleted', '{ uid: metadata.uid }, callLimits()', '{}, callLimits()'],
    ['a call returns before its object is deleted', '      await waitUntilGone(kind, name, metadata.uid, late);\n', ''],
    ['an edit that was overtaken is not repeated', 'tries === EDITS', 'tries === 1'],
    [
      'a field that another manager keeps counts as removed',
      'if (held.length > 0) throw fieldManaged(held);\n      return applied',
      'return applied',
    ],
  ]),
  ...mutantsWithTest(`${CACHES}kube-failures.ts`, `${CACHES}kube-failures.test.ts`, [
    ['an item of a list has no pointer', 'field.split(/[.[\\]]/)', 'field.split(/[.]/)'],
  ]),
  ...mutantsWithTest(`${RESOURCES}insight/explain.ts`, `${RESOURCES}insight/explain.test.ts`, [
    ['a stream is short of tokens because another one is', 'each.queue === queue && ', ''],
    ['a missing stream in Redis looks like a decision', "queue.state === 'missing' || ", ''],
  ]),
  ...mutantsWithTest(`${RESOURCES}inbox/inbox-access.ts`, `${RESOURCES}inbox/inbox-access.test.ts`, [
    [
      'an event of a deleted subscription is reported as a missing subscription',
      "error.code === 'unknown_resource') throw new Refusal('unknown_event');",
      'false) throw error;',
    ],
  ]),
  ...mutantsWithTest('src/dataplane/sandbox/sent-headers.ts', 'src/dataplane/sandbox/sent-headers.test.ts', [
    ['a producer can see header values of the partner', 'secret.has(name.toLowerCase())', 'secret.has(name)'],
    ['a producer can see signatures', "if (name === 'webhook-signature') shown", 'if (false) shown'],
  ]),
  ...mutantsWithTest(`${SANDBOX}sandbox-route.ts`, `${SANDBOX}sandbox-route.test.ts`, [
    [
      'a stream that has just been closed accepts sandbox events',
      "    if (known.config.state === 'closing') return answers.sendProblem(reply, startedMs, 'stream_closing');\n",
      '',
    ],
  ]),
  ...mutantsWithTest(`${SANDBOX}run-report-route.ts`, `${SANDBOX}sandbox-route.test.ts`, [
    ['an unknown parameter of a report is ignored', '.filter(name => !known.includes(name))', '.filter(() => false)'],
  ]),
  ...mutantsWithTest(`${SANDBOX}sandbox-route.ts`, `${SANDBOX}sandbox-route.test.ts`, [
    ['sandbox events are accepted while the memory is full', "memory.isFull() ? 'full' : undefined", 'undefined'],
  ]),
];
