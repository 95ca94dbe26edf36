import { type Mutant, mutantsWithTest } from './mutant.ts';

const KINDS = 'src/controller/kinds/';
const ACTIVATION = `${KINDS}activation/`;
const INTEGRATION = `${KINDS}integration/`;
const STREAM = `${KINDS}catalog-stream/`;
const WORKSPACE = `${KINDS}workspace/`;

/** Mutants of the code that reconciles a single kind. */
export const KIND_MUTANTS: readonly Mutant[] = [
  ...mutantsWithTest(`${KINDS}account/shortages.ts`, `${KINDS}account/shortages.test.ts`, [
    [
      'a deleted account counts as short of tokens',
      '      for (const account of known.keys()) if (!exists(account)) known.delete(account);\n',
      '',
    ],
  ]),
  ...mutantsWithTest(`${ACTIVATION}open-gates.ts`, `${ACTIVATION}open-gates.test.ts`, [
    [
      'a group key is open since a time at which it was not effective',
      "effective?.status === 'True' ? [Date",
      'effective !== undefined ? [Date',
    ],
  ]),
  ...mutantsWithTest(`${ACTIVATION}pair-selection.ts`, `${ACTIVATION}pair-selection.test.ts`, [
    ['a group key with a comma selects other Activations', '/[\\\\,=]/g', '/[\\\\=]/g'],
  ]),
  ...mutantsWithTest(`${ACTIVATION}pair-statuses.ts`, `${ACTIVATION}reconcile.test.ts`, [
    ['a deleted Activation prevents the status of the next one', 'if (!isMissing(error)) throw error;', 'throw error;'],
  ]),
  ...mutantsWithTest(`${ACTIVATION}reconcile.ts`, `${ACTIVATION}reconcile.test.ts`, [
    [
      'an Activation does not show a failure',
      '      await statuses.writeFailure(activations, explained, attempt);\n',
      '',
    ],
    [
      'a revoked group key stays open while there is no workspace',
      'if (!workspaceExists && isOpen(activations))',
      'if (!workspaceExists)',
    ],
    ['a revoked group key stays open during a pause', ' && isOpen(activations) && integration !== undefined', ''],
  ]),
  ...mutantsWithTest(`${INTEGRATION}deliver.ts`, `${INTEGRATION}deliver.test.ts`, [
    [
      'an email is sent although the lease was lost while the limit was checked',
      '    signal.throwIfAborted();\n    const id',
      '    const id',
    ],
    [
      'a token that is no longer valid stays in its Secret',
      '      await writeInvitationSecret(client, integration, undefined);\n',
      '',
    ],
  ]),
  ...mutantsWithTest(`${INTEGRATION}held-mails.ts`, `${INTEGRATION}deliver.test.ts`, [
    [
      'the status contains a time at which an email still has to wait',
      'Math.ceil(hold.untilMs',
      'Math.floor(hold.untilMs',
    ],
  ]),
  ...mutantsWithTest(`${INTEGRATION}mail-limit.ts`, `${INTEGRATION}mail-limit.test.ts`, [
    ['emails wait for a day although the limit was raised', ' || account.most !== mail.most', ''],
    ['emails wait for a limit whose time is over', 'account.untilMs <= mail.nowMs || ', ''],
  ]),
  ...mutantsWithTest(`${WORKSPACE}plan.ts`, `${WORKSPACE}plan.test.ts`, [
    ['a workspace does not get a new namespace after the old one', '      requeueAfterMs: 5_000,\n', ''],
  ]),
  ...mutantsWithTest(`${WORKSPACE}reconcile.ts`, `${WORKSPACE}reconcile.test.ts`, [
    [
      'the quota of a namespace stays although it belongs to nobody',
      "    if (claimed.namespace !== 'adopted') context.quotas.forget(name);\n",
      '',
    ],
    [
      'a namespace that belongs to nobody gets routes and a quota',
      "if (claimed.namespace === 'adopted') {",
      "if (claimed.namespace !== 'terminating') {",
    ],
    [
      'a new namespace does not have the label of its installation',
      '...(instance === DEFAULT_INSTANCE ? {} : { [INSTANCE_LABEL]: instance }),',
      '',
    ],
    [
      'the Secrets of a deleted workspace can still be read',
      '    await context.secretAccess.revoke(workspace.metadata.name);\n',
      '',
    ],
  ]),
  ...mutantsWithTest(`${STREAM}reconcile.ts`, `${STREAM}reconcile.test.ts`, [
    [
      'a stream with the policy Delete waits for its events',
      "stream.spec.deletionPolicy === 'Retain'",
      'stream.spec.deletionPolicy !== undefined',
    ],
    [
      'the deletion of a namespace waits for events',
      'if (!(await isNamespaceGoing(context, namespace)))',
      'if ((await isNamespaceGoing(context, namespace)) !== undefined)',
    ],
    ['a stream is never deleted without Redis', 'context.stuckForMs(stream) < FINALIZER_TIMEOUT_MS', 'true'],
    [
      'the events of a stream are lost during a short outage',
      'context.stuckForMs(stream) < FINALIZER_TIMEOUT_MS',
      'false',
    ],
  ]),
];
