import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import { isReservedWorkspaceName } from '../../../api/kinds/workspace.ts';
import { signedBy } from '../../../core/delivery/signing-secret.ts';
import { publicId } from '../../../core/ids/ids.ts';
import type { SubscriptionVerdict } from '../../../core/routing/subscription-route.ts';
import { missingWorkspaceMessage } from '../../context/missing-workspace.ts';
import type { Condition, DesiredCondition } from '../../engine/conditions.ts';
import type { EventNote, Outcome } from '../../engine/outcome.ts';
import type { SecretRefusal } from '../refused-secret.ts';
import {
  disabledMessage,
  type EndpointFacts,
  endpointEvents,
  endpointStatus,
  failingCondition,
  nextWarningInMs,
} from './endpoint-condition.ts';

const condition = CONDITION.Subscription;
const reason = REASON.Subscription;

export interface SubscriptionFacts {
  readonly namespace: string;
  readonly name: string;
  readonly producer: string;
  readonly stream: string;
  readonly verdict: SubscriptionVerdict;
  /** Value of status.admittedAt, set once when the subscription is first admitted. */
  readonly admittedAt: string | undefined;
  readonly signing: SubscriptionStatus['signing'];
  /** Secret version in the spec. Undefined if there is no endpoint. */
  readonly secretVersion: number | undefined;
  /** Id of the root key that a new secret is derived from. */
  readonly firstKey: string;
  /** The root key id for secrets without an id. */
  readonly oldestKey: string;
  /** The result of the last check. Undefined if the subscription has not been checked yet. */
  readonly backlogAtRisk: boolean | undefined;
  /** Condition currently in the status. */
  readonly recordedBacklog: Pick<Condition, 'status' | 'reason' | 'message'> | undefined;
  readonly endpoint: EndpointFacts;
  /**
   * The reason why the signing secret couldn't be mirrored. Undefined if the secret was mirrored, or if there is no
   * endpoint.
   */
  readonly mirrorFault?: SecretRefusal | undefined;
  readonly now: string;
}

/** Returns what to do about a missing grant. The namespace is often the wrong one if `-n` is missing. */
function grantRequest({ producer, namespace }: SubscriptionFacts): string {
  if (isReservedWorkspaceName(namespace)) return `Note that ${missingWorkspaceMessage(namespace)}`;
  const request = `Ask the producer to set spec.workspace of its Integration to ${namespace}`;
  return namespace === producer
    ? `${request}. Check the namespace because a Subscription must be in the namespace of the receiving workspace`
    : request;
}

const WAITING_MESSAGE = {
  WaitingForWorkspace: (facts: SubscriptionFacts) =>
    `the producer's workspace ${facts.producer} does not exist, or does not own its namespace yet. Check the name in spec.producer, or ask the producer`,
  WaitingForGrant: (facts: SubscriptionFacts) =>
    `${facts.producer} has not granted this workspace an integration with that name, or the integration has ended. Check spec.producer and spec.integration. ${grantRequest(facts)}`,
  WaitingForStream: (facts: SubscriptionFacts) =>
    `stream ${facts.stream} does not exist, or is being deleted. Check the name in spec.stream, or ask the producer to create the stream`,
} as const;

const REFUSED_MESSAGE = {
  Duplicate: ({ about }: SubscriptionVerdict) =>
    `an older Subscription ${about} exists for the same integration and stream. Change the older Subscription and delete this one`,
  StreamDeprecated: () =>
    'the stream is deprecated and does not accept new subscriptions. Ask the producer to publish the stream or delete this Subscription',
} as const;

const LIVE_MESSAGE: Record<SubscriptionVerdict['live'], string> = {
  Live: 'events flow',
  Blocked:
    'routing is paused because the producer blocks the stream. Events are kept until their retention period ends',
  Suspended: 'routing is paused because suspended is true. Events are kept until their retention period ends',
  EndpointDisabled: 'events are kept in the inbox because the endpoint is disabled',
  EndpointRefused: 'events are kept in the inbox because the endpoint is not allowed',
  WaitingForSecret: 'events are kept in the inbox because a header of the endpoint does not have a value yet',
  HeaderNotReadable: 'events are kept in the inbox because a header of the endpoint cannot be decrypted',
  SigningKeyMissing: 'events are kept in the inbox because the signing secret cannot be derived',
  SpecRefused:
    'routing is paused because the spec contains a value that cannot be applied. Events are kept until their retention period ends. Change the value',
  InsufficientTokens:
    "routing is paused because the producer's account does not exist or does not have enough tokens. Events are kept until their retention period ends",
  NotAdmitted: 'the Subscription is not admitted. For more information, see the Ready condition',
};

const DETAIL_MESSAGE: Readonly<Record<string, string>> = {
  address_refused:
    'its address is neither public nor in a network allowed by the operator (SLUICE_ALLOWED_NETWORKS), or it is in a network refused by the operator (SLUICE_REFUSED_NETWORKS). Use a different address, or contact the operator',
  port_refused:
    'its port is not allowed by the operator (SLUICE_ALLOWED_PORTS). Use a different port, or contact the operator',
  plain_http_refused: 'http is only allowed for addresses in allowed networks. Use https for host names',
  secret_missing:
    'the Secret does not exist in this namespace, or its type is for credentials of the cluster or of Sluice. Create a Secret of type Opaque',
  key_missing: 'the Secret does not contain this key',
  secret_unread: 'the controller cannot read the Secret and will retry',
  seal_not_opened:
    'its valueSealed was encrypted for another Subscription, header, or host, or with a root key that is missing on the controller. Set the value again using the REST API or replace valueSealed with value or valueFrom',
  root_key_missing:
    'the root key for the current or the previous secret is missing. Ask the operator to restore the file (SLUICE_ROOT_KEY_FILE), or rotate the signing secret until both secrets are derived from an existing root key',
  header_value_refused: 'the value must be visible ASCII characters and spaces, with at most 4,096 characters',
};

function readiness(facts: SubscriptionFacts): DesiredCondition[] {
  const { ready } = facts.verdict;
  if (ready === 'Admitted') {
    return [
      { type: condition.Ready, status: 'True', reason: reason.Ready.Admitted, message: 'the routes are applied' },
    ];
  }
  if (ready === 'Duplicate' || ready === 'StreamDeprecated') {
    const message = REFUSED_MESSAGE[ready](facts.verdict);
    const refused = { status: 'False', reason: reason.Ready[ready], message } as const;
    return [
      { type: condition.Ready, ...refused },
      { type: condition.Stalled, status: 'True', reason: reason.Stalled[ready], message },
    ];
  }
  const message = WAITING_MESSAGE[ready](facts);
  return [
    { type: condition.Ready, status: 'Unknown', reason: reason.Ready[ready], message },
    { type: condition.Reconciling, status: 'True', reason: reason.Reconciling.Progressing, message },
  ];
}

/**
 * Returns the version and time of the newest signing secret. A higher version in the spec causes the secret to be
 * rotated now.
 */
function rotation(facts: SubscriptionFacts): SubscriptionStatus['signing'] {
  const { secretVersion, firstKey } = facts;
  const signing = pinned(facts);
  if (secretVersion === undefined || signing?.version === secretVersion) return signing;
  const { key: _key, previousKey: _previousKey, ...rest } = signing ?? {};
  return { ...rest, ...signedBy(signing, secretVersion, firstKey), version: secretVersion, rotatedAt: facts.now };
}

/**
 * Adds the root key ids to a secret from an earlier version that did not store them. Without an id, the secret would
 * silently change when a different key becomes the oldest one.
 */
function pinned({ signing, oldestKey }: SubscriptionFacts): SubscriptionStatus['signing'] {
  if (signing?.salt === undefined || signing.key !== undefined) return signing;
  const previous = (signing.version ?? 1) > 1 ? { previousKey: signing.previousKey ?? oldestKey } : {};
  return { ...signing, key: oldestKey, ...previous };
}

const BACKLOG_MESSAGE = {
  NearRetention:
    'the oldest waiting event is older than 80 % of the retention period and will be lost when the period ends',
  WithinRetention: 'no waiting event is close to the end of its retention period',
} as const;

/**
 * Returns the BacklogAtRisk condition. Most subscriptions don't have this condition, because it is only added when they
 * are at risk for the first time.
 */
function backlog({ verdict, backlogAtRisk, recordedBacklog }: SubscriptionFacts): DesiredCondition[] {
  const type = condition.BacklogAtRisk;
  if (verdict.ready !== 'Admitted' || (recordedBacklog === undefined && backlogAtRisk !== true)) return [];
  if (backlogAtRisk === undefined && recordedBacklog !== undefined) {
    const { status, reason: why, message } = recordedBacklog;
    return [{ type, status, reason: why, message }];
  }
  const why = backlogAtRisk === true ? 'NearRetention' : 'WithinRetention';
  const status = backlogAtRisk === true ? 'True' : 'False';
  return [{ type, status, reason: reason.BacklogAtRisk[why], message: BACKLOG_MESSAGE[why] }];
}

/** Returns an Event when the backlog becomes at risk, and when it is no longer at risk. */
function backlogEvents(facts: SubscriptionFacts): EventNote[] {
  const [now] = backlog(facts);
  const was = facts.recordedBacklog?.status === 'True';
  if (now === undefined || (now.status === 'True') === was) return [];
  return [{ type: was ? 'Normal' : 'Warning', reason: now.reason, message: now.message }];
}

/**
 * Returns the Live condition. Since routes are compiled from the status, a disabled endpoint is reported here before
 * the routes contain it.
 */
function liveness({ verdict, endpoint }: SubscriptionFacts): DesiredCondition {
  const disabled = endpointStatus(endpoint);
  const sends = verdict.live === 'Live' || verdict.live === 'InsufficientTokens' || verdict.live === 'EndpointDisabled';
  if (disabled !== undefined && sends) {
    const message = disabledMessage(disabled);
    return { type: condition.Live, status: 'False', reason: reason.Live.EndpointDisabled, message };
  }
  const about = verdict.about === undefined ? '' : ` (${verdict.about})`;
  const detail = verdict.detail === undefined ? '' : `: ${DETAIL_MESSAGE[verdict.detail] ?? verdict.detail}${about}`;
  return {
    type: condition.Live,
    status: verdict.live === 'Live' ? 'True' : 'False',
    reason: reason.Live[verdict.live],
    message: LIVE_MESSAGE[verdict.live] + detail,
  };
}

/**
 * Returns an Event for a spec that can't be applied. No correct object has such a spec, so the operator should notice
 * it.
 */
function refusalEvents(facts: SubscriptionFacts): EventNote[] {
  if (facts.verdict.live !== 'SpecRefused') return [];
  return [{ type: 'Warning', reason: reason.Live.SpecRefused, message: liveness(facts).message }];
}

/** Retry interval for rejected Secrets, in milliseconds. */
const MIRROR_RETRY_MS = 300_000;

/** Returns the condition for a rejected Secret. */
function mirroring({ mirrorFault }: SubscriptionFacts): DesiredCondition[] {
  if (mirrorFault === undefined) return [];
  return [{ type: condition.SecretMirrored, status: 'False', ...mirrorFault }];
}

/**
 * Returns the delay in milliseconds before requeuing an unchanged subscription, or undefined if this isn't required.
 */
function requeueInMs({ endpoint, mirrorFault }: SubscriptionFacts): number | undefined {
  const warningMs = nextWarningInMs(endpoint);
  return mirrorFault === undefined ? warningMs : Math.min(warningMs ?? MIRROR_RETRY_MS, MIRROR_RETRY_MS);
}

/** Returns the status of a subscription whose routes have been applied. */
export function planSubscription(facts: SubscriptionFacts): Outcome<SubscriptionStatus> {
  const { verdict, endpoint } = facts;
  return {
    status: {
      publicId: publicId('Subscription', facts.namespace, facts.name),
      admittedAt: facts.admittedAt ?? (verdict.ready === 'Admitted' ? facts.now : undefined),
      signing: rotation(facts),
      endpoint: endpointStatus(endpoint),
    },
    conditions: [
      ...readiness(facts),
      liveness(facts),
      ...failingCondition(endpoint),
      ...backlog(facts),
      ...mirroring(facts),
    ],
    events: [
      ...backlogEvents(facts),
      ...refusalEvents(facts),
      ...endpointEvents(endpoint),
      ...mirroring(facts).map(fault => ({ type: 'Warning', reason: fault.reason, message: fault.message }) as const),
    ],
    requeueAfterMs: requeueInMs(facts),
    // Don't include missing grants here, as the producer might take a while to create one.
    missingReference: verdict.ready === 'WaitingForWorkspace' || verdict.ready === 'WaitingForStream',
  };
}
