/** The share of the retention period after which an undelivered event is at risk. */
const AT_RISK_SHARE = 0.8;

/** Returns the time when a waiting event that was accepted at `acceptedMs` becomes at risk, in milliseconds. */
export function atRiskFromMs(acceptedMs: number, retentionMs: number): number {
  return acceptedMs + AT_RISK_SHARE * retentionMs;
}
