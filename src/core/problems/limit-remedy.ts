/** The known facts about a limit of an account. */
interface LimitFacts {
  /** Public id of the account. Left out if another sentence names it. */
  readonly account?: string;
  readonly most?: number | undefined;
  /** The highest limit of the installation. Left out if it is unknown, or if there is none. */
  readonly ceiling?: number | undefined;
}

/**
 * Returns the sentence about who can raise a limit of an account.
 *
 * @param limit its name in `spec.limits`
 */
export function remedyOfLimit(limit: string, { account, most, ceiling }: LimitFacts = {}): string {
  if (most !== undefined && most === ceiling) {
    return 'The installation does not allow a higher limit (SLUICE_MAX_LIMITS). Only its operator can raise this maximum.';
  }
  const owner = account === undefined ? 'this account' : `account ${account}`;
  return `Ask the operator of this Sluice to raise ${limit} for ${owner}.`;
}
