/** What the scheme of a signature leaves of it: how many there are is told, what they are is not. */
const HIDDEN = '…';

/**
 * Headers of an attempt as a producer may see them, in order: signatures, which are good for the partner's endpoint, and
 * the values of those that the partner has set itself are left out.
 *
 * @param headers flat list of names and values
 * @param ofEndpoint names, in any case, of the headers that the endpoint's owner has set
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
