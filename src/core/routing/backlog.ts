/** Share of the retention after which a waiting event risks removal before delivery. */
const AT_RISK_SHARE = 0.8;

/** Returns when an event accepted at `acceptedMs` that still waits becomes at risk, ms. */
export function atRiskFromMs(acceptedMs: number, retentionMs: number): number {
  return acceptedMs + AT_RISK_SHARE * retentionMs;
}
