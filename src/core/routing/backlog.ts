/** Of the retention: what waits for longer is at risk of being removed before it is delivered. */
const AT_RISK_SHARE = 0.8;

/** When an event that was accepted at `acceptedMs` and still waits is at risk, ms. */
export function atRiskFromMs(acceptedMs: number, retentionMs: number): number {
  return acceptedMs + AT_RISK_SHARE * retentionMs;
}
