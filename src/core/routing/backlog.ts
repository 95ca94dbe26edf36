/** The share of the retention period after which we consider an undelivered event to be at risk. */
const AT_RISK_SHARE = 0.8;

/** Returns the time at which a waiting event is at risk (in milliseconds), if it was accepted at `acceptedMs`. */
export function atRiskFromMs(acceptedMs: number, retentionMs: number): number {
  return acceptedMs + AT_RISK_SHARE * retentionMs;
}
