import { CONDITION } from '../../../api/condition-reasons.ts';
import { timestampOf } from '../../../kube/object.ts';
import type { MailHold } from '../../../record/mail-reader.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { findCondition } from '../../engine/conditions.ts';
import type { Deliveries } from './deliveries.ts';
import type { HeldBack } from './invitation.ts';
import type { MailLimit } from './mail-limit.ts';

const HELD = {
  address: 'AddressLimitReached',
  account: 'AccountLimitReached',
} as const satisfies Record<MailHold['by'], HeldBack['held']>;

/** The time at which the email is re-checked. */
interface Requeue {
  readonly requeueAfterMs: number;
}

interface HeldMailsDeps {
  readonly deliveries: Deliveries;
  readonly mailLimit: Pick<MailLimit, 'known'>;
  /** Enqueues the integration so that its status shows why the email has to wait. */
  readonly onResult: (key: string) => void;
}

/** Creates the functions for emails which have to wait because of a limit. All times use the Redis clock. */
export function createHeldMails({ nowMs }: Pick<Context, 'nowMs'>, { deliveries, mailLimit, onResult }: HeldMailsDeps) {
  function notedFor(key: string, integration: Cached<'Integration'>, issuedAt: string): HeldBack | undefined {
    const noted = deliveries.of(key, { uid: integration.metadata.uid, issuedAt });
    return noted !== undefined && 'held' in noted ? noted : undefined;
  }

  /**
   * Holds back an email. In case of an account limit, the status is only written once. Many emails may have to wait for
   * days, and this time changes whenever an email is sent.
   */
  function holdBack(key: string, integration: Cached<'Integration'>, issuedAt: string, hold: MailHold): Requeue {
    const held = HELD[hold.by];
    const shown = findCondition(integration.status?.conditions, CONDITION.Integration.InvitationSent)?.reason;
    if (notedFor(key, integration, issuedAt)?.held !== held && (hold.by === 'address' || shown !== held)) {
      const until = timestampOf(Math.ceil(hold.untilMs / 1_000) * 1_000);
      deliveries.note(key, { uid: integration.metadata.uid, issuedAt }, { held, until });
      onResult(key);
    }
    return { requeueAfterMs: Math.max(1_000, hold.untilMs - nowMs()) };
  }

  return {
    holdBack,
    /** Holds back an email if it is already known to exceed a limit. Returns undefined if this is not known. */
    known(key: string, integration: Cached<'Integration'>, issuedAt: string): Requeue | undefined {
      const noted = notedFor(key, integration, issuedAt);
      const untilMs = noted?.held === HELD.address ? Date.parse(noted.until) : 0;
      const hold = untilMs > nowMs() ? ({ by: 'address', untilMs } as const) : mailLimit.known(integration);
      return hold && holdBack(key, integration, issuedAt, hold);
    },
  };
}
