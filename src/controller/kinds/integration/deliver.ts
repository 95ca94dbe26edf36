import { INVITATION_SECRET_TYPE, invitationSecretName } from '../../../api/well-known.ts';
import { timestampOf } from '../../../kube/object.ts';
import { resourceOf } from '../../../kube/resource.ts';
import { MailError, type SendInvitation } from '../../../mail/mailer.ts';
import type { Backoff } from '../../../time/backoff.ts';
import type { Cached } from '../../caches/caches.ts';
import { type Context, ownsNamespace } from '../../context/context.ts';
import { isPaused } from '../../context/paused.ts';
import type { Attempt } from '../../engine/keyed-controller.ts';
import { refusalOf } from '../refused-secret.ts';
import type { Deliveries, InvitationId } from './deliveries.ts';
import { createHeldMails } from './held-mails.ts';
import type { Delivery } from './invitation.ts';
import type { InvitationMetrics } from './invitation-metrics.ts';
import { writeInvitationSecret } from './invitation-secret.ts';
import { type InvitationTask, planInvitationTask } from './invitation-task.ts';
import type { MailLimit } from './mail-limit.ts';

/** Backoff between attempts, starting at one second and increasing up to 15 minutes. */
export const DELIVERY_RETRY: Backoff = { firstMs: 1_000, mostMs: 900_000 };

/**
 * Retry interval after the mail server has rejected the recipient. The mailbox might be created later, so we keep
 * trying.
 */
const REFUSED_RETRY_MS = 6 * 60 * 60 * 1_000;

type HandOver = Extract<InvitationTask, { readonly token: string }>;

export interface DeliverDeps {
  /**
   * Sends an invitation by email. Undefined if no mail server is configured, in which case tokens are written to
   * Secrets.
   */
  readonly sendInvitation: SendInvitation | undefined;
  readonly deliveries: Deliveries;
  readonly mailLimit: MailLimit;
  /** Enqueues the integration, so the result will be added to its status. */
  readonly onResult: (key: string) => void;
  readonly metrics: InvitationMetrics;
}

/** Sends an email or writes the Secret. @throws MailError, KubeError */
async function handOver(
  { client, wallMs }: Pick<Context, 'client' | 'wallMs'>,
  sendInvitation: SendInvitation | undefined,
  { integration, task, signal }: { integration: Cached<'Integration'>; task: HandOver; signal: AbortSignal },
): Promise<Delivery> {
  if (task.do === 'mail') {
    const { to, token, expiresAt } = task;
    await sendInvitation?.({ to, producer: integration.metadata.namespace as string, token, expiresAt }, signal);
  } else {
    await writeInvitationSecret(client, integration, task.token);
  }
  return { sentAt: timestampOf(wallMs()), as: task.do === 'mail' ? 'Sent' : 'SecretWritten' };
}

/**
 * Creates a function to send invitations. Sending is separate from reconciling integrations because a slow mail server
 * should not delay the Ready condition. The result is kept in `deliveries` until it has been added to the status.
 */
export function deliverInvitation(context: Context, deps: DeliverDeps) {
  const { caches, client } = context;
  const { sendInvitation, deliveries } = deps;

  function taskFor(key: string, integration: Cached<'Integration'>): InvitationTask {
    const { metadata, spec, status } = integration;
    const { uid, namespace, name, deletionTimestamp } = metadata;
    if (deletionTimestamp !== undefined) return { do: 'nothing' };
    const issuedAt = status?.invitation?.issuedAt;
    return planInvitationTask({
      uid,
      spec,
      status,
      secretSha256: caches.invitationSecrets.store.get(`${namespace}/${invitationSecretName(name)}`)?.sha256,
      delivery: issuedAt === undefined ? undefined : deliveries.of(key, { uid, issuedAt }),
      hasMailServer: sendInvitation !== undefined,
      keys: context.keys,
      nowMs: context.wallMs(),
    });
  }

  /**
   * Records a delivery's result unless the delivery only repaired a Secret. In that case the status already
   * contains the result.
   */
  function conclude(key: string, id: InvitationId, task: HandOver, delivery: Delivery): void {
    if (task.do === 'write-secret' && task.again) return;
    deliveries.note(key, id, delivery);
    deps.onResult(key);
  }

  const heldMails = createHeldMails(context, deps);

  return async (key: string, { signal }: Attempt): Promise<{ requeueAfterMs: number } | undefined> => {
    const cached = caches.Integration.store.get(key);
    if (cached === undefined || cached.status?.invitation?.sentAt !== undefined) deliveries.forget(key);
    const namespace = cached?.metadata.namespace as string;
    if (cached === undefined || isPaused(caches, namespace) || !ownsNamespace(caches, namespace)) return undefined;
    const due = taskFor(key, cached);
    if (due.do === 'nothing') return undefined;
    const known = due.do === 'mail' ? heldMails.known(key, cached, due.issuedAt) : undefined;
    if (known !== undefined) return known;
    // Read the object from the API server, since the cache might be missing a revocation or a response. An email can't
    // be recalled after it has been sent.
    const integration = await client.get<Cached<'Integration'>>(resourceOf('Integration'), cached.metadata);
    if (integration === undefined) return undefined;
    const task = taskFor(key, integration);
    if (task.do === 'nothing') return undefined;
    if (task.do === 'empty-secret') {
      await writeInvitationSecret(client, integration, undefined);
      return undefined;
    }
    signal.throwIfAborted();
    if (task.do === 'mail') {
      const hold = await deps.mailLimit.reserve(integration);
      if (hold !== undefined) {
        deps.metrics.mailed('held');
        return heldMails.holdBack(key, integration, task.issuedAt, hold);
      }
    }
    signal.throwIfAborted();
    const id = { uid: integration.metadata.uid, issuedAt: task.issuedAt };
    try {
      const delivery = await handOver(context, sendInvitation, { integration, task, signal });
      if (task.do === 'mail') deps.metrics.mailed('sent');
      conclude(key, id, task, delivery);
      return undefined;
    } catch (error) {
      if (signal.aborted) throw error;
      if (task.do === 'mail') deps.metrics.mailed('failed');
      conclude(key, id, task, await failureOf(context, integration, error));
      // Addresses submitted to the server are counted because otherwise it would be possible to try any number of
      // addresses.
      if (error instanceof MailError && error.unsent && !error.refused) await deps.mailLimit.release(integration);
      if (error instanceof MailError && error.refused) return { requeueAfterMs: REFUSED_RETRY_MS };
      throw error;
    }
  };
}

/** Returns the failure to show in the status. For an email, it is limited to a code. */
async function failureOf(
  context: Pick<Context, 'client'>,
  { metadata: { namespace = '', name } }: Cached<'Integration'>,
  error: unknown,
): Promise<Delivery> {
  if (error instanceof MailError) return { failed: 'SmtpFailed', code: error.code };
  const reason = (error as { readonly reason?: unknown }).reason;
  const failure = { failed: 'SecretFailed', code: typeof reason === 'string' ? reason : 'Unknown' } as const;
  const secret = { namespace, name: invitationSecretName(name), type: INVITATION_SECRET_TYPE, content: 'token' };
  const refusal = await refusalOf(context, secret, error).catch(() => undefined);
  return refusal === undefined ? failure : { ...failure, fault: refusal.message };
}
