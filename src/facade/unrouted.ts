import type { RefusalFacts } from '../http/refusal.ts';

/** Matches paths made up only of characters used by routes. */
export const PLAIN_PATH = /^\/[A-Za-z0-9/_.~:@-]*$/;

/** Response for browsers visiting the root path. Links follow RFC 8631. */
const ROOT = {
  detail:
    'This path does not have any content. Open /docs in a browser or read /openapi.json. All calls are under /waas.',
  headers: { link: '</docs>; rel="service-doc", </openapi.json>; rel="service-desc"' },
};

/** Returns a hint for a path without a route, if one is available. */
export function factsOfNoRoute(path: string, servesReference: boolean): RefusalFacts {
  if (path === '/' && servesReference) return ROOT;
  if (/^\/events(\/|$)/.test(path)) {
    return {
      detail:
        'This address belongs to the REST API (the facade). Send events to the address of ingress, with the same path. If you do not know this address, ask the operator.',
    };
  }
  return path.endsWith('/') ? { detail: 'Remove the slash at the end of the path.' } : {};
}
