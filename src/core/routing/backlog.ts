/** Share of the retention period after which an undelivered event counts as at risk. */
const AT_RISK_SHARE = 0.8;

/** Returns when a waiting event accepted at `acceptedMs` will become at risk, in milliseconds. */
export function atRiskFromMs(acceptedMs: number, retentionMs: number): number {
  return acceptedMs + AT_RISK_SHARE * retentionMs;
}
