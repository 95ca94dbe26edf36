import { beforeEach, describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import { deriveInvitationToken, issueInvitation } from '../../../core/ids/invitation.ts';
import { errorFromStatus } from '../../../kube/kube-error.ts';
import type { Store } from '../../../kube/store.ts';
import type { InvitationMail } from '../../../mail/invitation-message.ts';
import { MailError } from '../../../mail/mailer.ts';
import type { MailHold } from '../../../record/mail-reader.ts';
import { createLogger } from '../../../telemetry/log.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { deliverInvitation } from './deliver.ts';
import { createDeliveries, type Deliveries } from './deliveries.ts';

const NOW = '2026-01-02T03:04:05Z';
const KEY = 'acme/globex';
const issued = issueInvitation(Buffer.alloc(32, 7), 'uid-globex', NOW);
const id = { uid: 'uid-globex', issuedAt: NOW };
const token = deriveInvitationToken(Buffer.alloc(32, 7), 'uid-globex', NOW);
const invitedEmail = 'ada@partner.example';

const workspace = (metadata: object = {}) =>
  objectOf<'Workspace'>('acme', { account: 'acme' }, { namespace: undefined, metadata });
const invited = (spec: Partial<Cached<'Integration'>['spec']> = {}, more: object = {}) =>
  objectOf<'Integration'>('globex', { invitedEmail, ...spec }, { status: { invitation: issued }, ...more });

interface Asked {
  readonly mails: InvitationMail[];
  readonly secrets: object[];
  readonly results: string[];
  readonly counted: string[];
  readonly read: string[];
  /** Emails that were returned to the limit. */
  readonly released: string[];
}

let deliveries: Deliveries;
beforeEach(() => {
  deliveries = createDeliveries();
});

/** Runs a single turn. `live` is the API server's object, which defaults to the cached object. */
async function deliver(
  cached: Cached<'Integration'> | undefined,
  options: {
    readonly live?: Cached<'Integration'> | undefined;
    readonly workspace?: Cached<'Workspace'>;
    readonly namespaceDeleting?: boolean;
    readonly send?: ((mail: InvitationMail) => Promise<void>) | 'no server';
    readonly apply?: () => Promise<object>;
    /** The API server's Secret. */
    readonly secret?: object;
    readonly signal?: AbortSignal;
    readonly hold?: MailHold | undefined;
    /** Called when the limit is checked. */
    readonly onReserve?: () => void;
    /** The hash of the token in the Secret. */
    readonly secretSha256?: string;
    readonly known?: MailHold | undefined;
    readonly release?: () => Promise<void>;
  } = {},
): Promise<Asked & { readonly answer: unknown; readonly error: unknown }> {
  const asked: Asked = { mails: [], secrets: [], results: [], counted: [], read: [], released: [] };
  const { context } = createTestContext(
    { Workspace: [options.workspace ?? workspace()], Integration: cached === undefined ? [] : [cached] },
    {
      wallMs: Date.parse(NOW) + 5_000,
      ...(options.namespaceDeleting === undefined ? {} : { namespaceDeleting: true }),
    },
  );
  if (options.secretSha256 !== undefined) {
    const store = context.caches.invitationSecrets.store as unknown as Store<object>;
    store.set('acme/globex-invitation', { sha256: options.secretSha256 });
  }
  const client = {
    get: async ({ kind }: { kind: string }) => {
      if (kind === 'Secret') return options.secret;
      asked.read.push('api server');
      return 'live' in options ? options.live : cached;
    },
    apply: async (_resource: object, _name: object, body: object) => {
      asked.secrets.push(body);
      return options.apply?.();
    },
  } as unknown as Context['client'];
  const { send } = options;
  const turn = deliverInvitation(
    { ...context, client },
    {
      sendInvitation:
        send === 'no server'
          ? undefined
          : async mail => {
              asked.mails.push(mail);
              await send?.(mail);
            },
      deliveries,
      mailLimit: {
        known: () => options.known,
        reserve: async () => {
          asked.read.push('limit');
          options.onReserve?.();
          return options.hold;
        },
        release: async () => {
          asked.released.push(KEY);
          await options.release?.();
        },
      },
      onResult: key => asked.results.push(key),
      metrics: { mailed: result => asked.counted.push(result) },
    },
  );
  const attempt = {
    failures: 0,
    signal: options.signal ?? new AbortController().signal,
    log: createLogger({ level: 'silent' }),
  };
  try {
    return { ...asked, answer: await turn(KEY, attempt), error: undefined };
  } catch (error) {
    return { ...asked, answer: undefined, error };
  }
}

describe('an invitation', () => {
  test('is emailed once, and the status is updated', async () => {
    const first = await deliver(invited());
    expect(first.mails).toEqual([{ to: invitedEmail, producer: 'acme', token, expiresAt: issued.expiresAt }]);
    expect(first).toMatchObject({ results: [KEY], counted: ['sent'], secrets: [] });
    expect(deliveries.of(KEY, id)).toEqual({ sentAt: '2026-01-02T03:04:10Z', as: 'Sent' });
    // The status has not been written yet.
    expect((await deliver(invited())).mails).toEqual([]);
    const written = invited({}, { status: { invitation: { ...issued, sentAt: NOW } } });
    expect((await deliver(written)).mails).toEqual([]);
    expect(deliveries.of(KEY, id)).toBeUndefined();
  });

  test.each<[string, Error, readonly string[]]>([
    ['an unavailable server', new MailError('ESOCKET', false, true), [KEY]],
    ['a server that defers it', new MailError('451', false), []],
    ['a server that refuses the address', new MailError('550', true), []],
    ['a connection that was lost', new MailError('ESOCKET', false), []],
    ['another failure', new Error('a defect'), []],
  ])('counts towards the limit unless it is certain that it was not sent: %s', async (_what, error, released) => {
    const send = () => Promise.reject(error);
    const turn = await deliver(invited(), { send });
    expect([turn.counted, turn.released]).toEqual([['failed'], released]);
  });

  test('that was not sent is reported, even if it cannot be returned to the limit', async () => {
    const send = () => Promise.reject(new MailError('ESOCKET', false, true));
    const turn = await deliver(invited(), { send, release: () => Promise.reject(new Error('no Redis')) });
    expect(turn).toMatchObject({ released: [KEY], results: [KEY], error: expect.any(Error) });
    expect(deliveries.of(KEY, id)).toEqual({ failed: 'SmtpFailed', code: 'ESOCKET' });
  });

  test.each<[string, Cached<'Integration'> | undefined]>([
    ['revoked', invited({ revoked: true })],
    ['declined', invited({ declined: true })],
    ['accepted', invited({ workspace: 'globex' })],
    ['sent by another leader', invited({}, { status: { invitation: { ...issued, sentAt: NOW } } })],
    ['deleted', undefined],
    ['being deleted', invited({}, { status: { invitation: issued }, metadata: { deletionTimestamp: NOW } })],
    ['another of that name', invited({}, { status: {}, metadata: { uid: 'another' } })],
  ])('that was just %s is not emailed, even if the cache is outdated', async (_what, live) => {
    const turn = await deliver(invited(), { live });
    expect(turn).toMatchObject({ mails: [], secrets: [], results: [], error: undefined });
  });

  test('is not emailed while the workspace is paused, or for a namespace that does not belong to the workspace', async () => {
    const paused = workspace({ annotations: { 'sluice.dev/paused': 'true' } });
    expect((await deliver(invited(), { workspace: paused })).mails).toEqual([]);
    expect((await deliver(invited(), { namespaceDeleting: true })).mails).toEqual([]);
    const leaving = workspace({ deletionTimestamp: NOW });
    expect((await deliver(invited(), { workspace: leaving })).mails).toEqual([]);
  });

  test('is not emailed by a process that has lost the lease', async () => {
    const turn = await deliver(invited(), { signal: AbortSignal.abort() });
    expect(turn.mails).toEqual([]);
    expect(turn.error).toBeDefined();
    expect(deliveries.of(KEY, id)).toBeUndefined();
    const over = new AbortController();
    const late = await deliver(invited(), { signal: over.signal, onReserve: () => over.abort() });
    expect(late).toMatchObject({ read: ['api server', 'limit'], mails: [], error: expect.anything() });
  });

  test('that the server does not accept now is tried again with increasing delays', async () => {
    const error = new MailError('451', false);
    const turn = await deliver(invited(), { send: () => Promise.reject(error) });
    expect(turn).toMatchObject({ error, results: [KEY], counted: ['failed'] });
    expect(deliveries.of(KEY, id)).toEqual({ failed: 'SmtpFailed', code: '451' });
    expect((await deliver(invited())).mails).toHaveLength(1);
    expect(deliveries.of(KEY, id)).toMatchObject({ as: 'Sent' });
  });

  test('whose recipient is refused is tried again after hours', async () => {
    const turn = await deliver(invited(), { send: () => Promise.reject(new MailError('550', true)) });
    expect(turn).toMatchObject({
      error: undefined,
      answer: { requeueAfterMs: 6 * 60 * 60 * 1_000 },
      counted: ['failed'],
    });
  });

  test('is written to a Secret that the integration owns if there is no mail server', async () => {
    const turn = await deliver(invited(), { send: 'no server' });
    expect(turn.secrets).toEqual([
      {
        metadata: {
          ownerReferences: [
            { apiVersion: 'sluice.dev/v1alpha1', kind: 'Integration', name: 'globex', uid: 'uid-globex' },
          ],
        },
        type: 'sluice.dev/invitation',
        data: { token: Buffer.from(token).toString('base64') },
      },
    ]);
    expect(turn).toMatchObject({ results: [KEY], counted: [] });
    expect(deliveries.of(KEY, id)).toMatchObject({ as: 'SecretWritten' });
  });

  test('that was answered or revoked is removed from its Secret', async () => {
    const sent = { status: { invitation: { ...issued, sentAt: NOW } } };
    for (const ended of [{ revoked: true }, { declined: true }, { workspace: 'globex' }]) {
      const turn = await deliver(invited(ended, sent), { send: 'no server', secretSha256: issued.tokenHash });
      expect(turn.secrets).toMatchObject([{ metadata: { ownerReferences: [{ name: 'globex' }] }, data: {} }]);
    }
  });

  test('whose Secret cannot be written reports the reason', async () => {
    const error = Object.assign(new Error('refused'), { reason: 'Forbidden' });
    const turn = await deliver(invited(), { send: 'no server', apply: () => Promise.reject(error) });
    expect(turn).toMatchObject({ error, results: [KEY] });
    expect(deliveries.of(KEY, id)).toEqual({ failed: 'SecretFailed', code: 'Forbidden' });
  });

  test('whose Secret has the name of another Secret says what to change', async () => {
    const error = errorFromStatus('PATCH /secrets', 422, { kind: 'Status', reason: 'Invalid', message: 'type' });
    const secret = { metadata: { name: 'globex-invitation' }, type: 'Opaque' };
    const turn = await deliver(invited(), { send: 'no server', apply: () => Promise.reject(error), secret });
    expect(turn).toMatchObject({ error, results: [KEY] });
    expect(deliveries.of(KEY, id)).toMatchObject({
      failed: 'SecretFailed',
      code: 'Invalid',
      fault: expect.stringMatching(/^a Secret globex-invitation of type Opaque already exists\. Delete or rename it/),
    });
  });

  test('of a deleted integration does not leave any data', async () => {
    deliveries.note(KEY, id, { sentAt: NOW, as: 'Sent' });
    await deliver(undefined);
    expect(deliveries.of(KEY, id)).toBeUndefined();
  });
});

describe('an email beyond a limit', () => {
  const nowMs = Date.parse(NOW) + 5_000;
  const hourLater = nowMs + 3_600_000;

  test('waits until the time in the status for its address, without another check before that', async () => {
    const hold: MailHold = { by: 'address', untilMs: hourLater };
    const first = await deliver(invited(), { hold });
    expect(first).toMatchObject({
      mails: [],
      results: [KEY],
      counted: ['held'],
      answer: { requeueAfterMs: 3_600_000 },
    });
    expect(deliveries.of(KEY, id)).toEqual({ held: 'AddressLimitReached', until: '2026-01-02T04:04:10Z' });
    expect(await deliver(invited(), { hold })).toMatchObject({ mails: [], results: [], read: [] });
  });

  test('waits for at least a second, and its status does not contain an earlier time', async () => {
    const turn = await deliver(invited(), { hold: { by: 'address', untilMs: nowMs + 1 } });
    expect(turn.answer).toEqual({ requeueAfterMs: 1_000 });
    expect(deliveries.of(KEY, id)).toMatchObject({ until: '2026-01-02T03:04:11Z' });
  });

  test('is sent once the limit allows it', async () => {
    deliveries.note(KEY, id, { held: 'AddressLimitReached', until: '2026-01-02T03:04:10Z' });
    expect((await deliver(invited())).mails).toHaveLength(1);
    expect(deliveries.of(KEY, id)).toMatchObject({ as: 'Sent' });
  });

  test('of an account that has reached the limit is not checked, and its status is written once', async () => {
    const known: MailHold = { by: 'account', untilMs: hourLater };
    const first = await deliver(invited(), { known });
    expect(first).toMatchObject({ mails: [], read: [], results: [KEY], answer: { requeueAfterMs: 3_600_000 } });
    const later = await deliver(invited(), { known: { by: 'account', untilMs: hourLater + 5_000 } });
    expect(later).toMatchObject({ mails: [], read: [], results: [] });
    deliveries = createDeliveries();
    const conditions = [
      { type: 'InvitationSent', status: 'False', reason: 'AccountLimitReached', message: '', lastTransitionTime: NOW },
    ];
    const shown = invited({}, { status: { invitation: issued, conditions } });
    expect(await deliver(shown, { known })).toMatchObject({ mails: [], results: [] });
  });

  test('is not limited if it is written to a Secret', async () => {
    const hold: MailHold = { by: 'address', untilMs: hourLater };
    const turn = await deliver(invited(), { send: 'no server', hold, known: hold });
    expect(turn.secrets).toHaveLength(1);
    expect(turn.read).not.toContain('limit');
  });
});
