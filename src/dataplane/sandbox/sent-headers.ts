/** Replacement for signatures and secret values. You can still see how many signatures a header contains. */
const HIDDEN = '…';

/**
 * Returns the attempt headers in a form that can be shown to a producer. The order is preserved. Signatures are
 * hidden because they would be valid for the partner endpoint. This also applies to values of headers set by the
 * partner.
 *
 * @param headers flat list of names and values
 * @param ofEndpoint names of headers set by the endpoint owner, in any case
 */
export function showHeaders(headers: readonly string[], ofEndpoint: Iterable<string>): [name: string, value: string][] {
  const secret = new Set([...ofEndpoint].map(name => name.toLowerCase()));
  const shown: [string, string][] = [];
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string;
    const value = headers[at + 1] as string;
    if (name === 'webhook-signature') shown.push([name, value.replaceAll(/,\S+/g, `,${HIDDEN}`)]);
    else shown.push([name, secret.has(name.toLowerCase()) ? HIDDEN : value]);
  }
  return shown;
}
