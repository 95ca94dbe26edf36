/** Replacement for signatures and secret values. The number of signatures in a header is still visible. */
const HIDDEN = '…';

/**
 * Returns the attempt headers in a form that can be shown to a producer. The order is preserved. Signatures are hidden
 * because they would be valid for the partner endpoint. The same applies to values of headers set by the partner.
 *
 * @param lines the headers as lines of a request
 * @param ofEndpoint names of headers set by the endpoint owner, in any case
 */
export function showHeaders(lines: string, ofEndpoint: Iterable<string>): [name: string, value: string][] {
  const secret = new Set([...ofEndpoint].map(name => name.toLowerCase()));
  const shown: [string, string][] = [];
  for (const line of lines.split('\r\n').slice(0, -1)) {
    const at = line.indexOf(': ');
    const [name, value] = [line.slice(0, at), line.slice(at + 2)];
    if (name === 'webhook-signature') shown.push([name, value.replaceAll(/,\S+/g, `,${HIDDEN}`)]);
    else shown.push([name, secret.has(name.toLowerCase()) ? HIDDEN : value]);
  }
  return shown;
}
