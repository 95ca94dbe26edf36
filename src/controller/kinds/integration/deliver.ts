import { invitationSecretName } from '../../../api/well-known.ts';
import { MailError, type SendInvitation } from '../../../mail/mailer.ts';
import { type Cached, resourceOf } from '../../caches/caches.ts';
import { ownsNamespace, type Room, timestampOf } from '../../context/context.ts';
import { isPaused } from '../../context/paused.ts';
import type { ReconcileContext } from '../../engine/keyed-controller.ts';
import type { RetryPauses } from '../../engine/work-queue.ts';
import type { Deliveries, InvitationId } from './deliveries.ts';
import type { Delivery } from './invitation.ts';
import type { InvitationMetrics } from './invitation-metrics.ts';
import { writeInvitationSecret } from './invitation-secret.ts';
import { type InvitationTask, planInvitationTask } from './invitation-task.ts';

/** Pauses between tries: a mail server that is away is asked soon, and then once in a quarter of an hour. */
export const DELIVERY_RETRY: RetryPauses = { firstMs: 1_000, mostMs: 900_000 };

/** A recipient that the mail server refused is tried again after so long: a mailbox may come to be. */
const REFUSED_RETRY_MS = 6 * 60 * 60 * 1_000;

type HandOver = Extract<InvitationTask, { readonly token: string }>;

export interface DeliverDeps {
  /** Undefined: there is no mail server, tokens go into Secrets. */
  readonly sendInvitation: SendInvitation | undefined;
  readonly deliveries: Deliveries;
  /** Has the integration's status say what came of it. */
  readonly tell: (key: string) => void;
  readonly metrics: InvitationMetrics;
}

/**
 * Hands invitations over, apart from the integrations' own worker: a mail server that is slow delays nobody's Ready. What
 * came of it goes through `deliveries` into the status.
 */
export function deliverInvitation(room: Room, deps: DeliverDeps) {
  const { world, client } = room;
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
      secretSha256: world.invitationSecrets.store.get(`${namespace}/${invitationSecretName(name)}`)?.sha256,
      delivery: issuedAt === undefined ? undefined : deliveries.of(key, { uid, issuedAt }),
      hasMailServer: sendInvitation !== undefined,
      rootKey: room.rootKey,
      nowMs: room.wallMs(),
    });
  }

  /** @throws MailError, KubeError */
  async function handOver(integration: Cached<'Integration'>, task: HandOver, signal: AbortSignal): Promise<Delivery> {
    if (task.do === 'mail') {
      const { to, token, expiresAt } = task;
      await sendInvitation?.({ to, producer: integration.metadata.namespace as string, token, expiresAt }, signal);
    } else {
      await writeInvitationSecret(client, integration, task.token);
    }
    return { sentAt: timestampOf(room.wallMs()), as: task.do === 'mail' ? 'Sent' : 'SecretWritten' };
  }

  /** What is only mended was told when it was handed over. */
  function conclude(key: string, id: InvitationId, task: HandOver, delivery: Delivery): void {
    if (task.do === 'write-secret' && task.again) return;
    deliveries.note(key, id, delivery);
    deps.tell(key);
  }

  return async (key: string, { signal }: ReconcileContext): Promise<{ requeueAfterMs: number } | undefined> => {
    const cached = world.Integration.store.get(key);
    if (cached === undefined || cached.status?.invitation?.sentAt !== undefined) deliveries.forget(key);
    const namespace = cached?.metadata.namespace as string;
    if (cached === undefined || isPaused(world, namespace) || !ownsNamespace(world, namespace)) return undefined;
    if (taskFor(key, cached).do === 'nothing') return undefined;
    // What was revoked or answered a moment ago may not be in the cache yet, and a mail cannot be taken back.
    const integration = await client.get<Cached<'Integration'>>(resourceOf('Integration'), cached.metadata);
    if (integration === undefined) return undefined;
    const task = taskFor(key, integration);
    if (task.do === 'nothing') return undefined;
    if (task.do === 'empty-secret') {
      await writeInvitationSecret(client, integration, undefined);
      return undefined;
    }
    signal.throwIfAborted();
    const id = { uid: integration.metadata.uid, issuedAt: task.issuedAt };
    try {
      const delivery = await handOver(integration, task, signal);
      if (task.do === 'mail') deps.metrics.mailed('sent');
      conclude(key, id, task, delivery);
      return undefined;
    } catch (error) {
      if (signal.aborted) throw error;
      if (task.do === 'mail') deps.metrics.mailed('failed');
      conclude(key, id, task, failureOf(error));
      if (error instanceof MailError && error.refused) return { requeueAfterMs: REFUSED_RETRY_MS };
      throw error;
    }
  };
}

/** As the status tells it: nothing but a code. */
function failureOf(error: unknown): Delivery {
  if (error instanceof MailError) return { failed: 'SmtpFailed', code: error.code };
  const reason = (error as { readonly reason?: unknown }).reason;
  return { failed: 'SecretFailed', code: typeof reason === 'string' ? reason : 'Unknown' };
}
