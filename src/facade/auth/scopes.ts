/** The scopes of the REST API. Every route requires exactly one of these scopes. Scopes do not include each other. */
export const SCOPES = {
  'waas:read': 'Read resources.',
  'waas:write': 'Change resources.',
  'waas:keys': 'List, create, and delete ingress keys. Show and rotate signing secrets.',
  'waas:replay': 'Replay events, which costs tokens.',
} as const;

export type Scope = keyof typeof SCOPES;

/**
 * Returns the scopes of a token. Scopes are read from the `scope` claim (RFC 8693, section 4.2) and the `scp` claim.
 * Both claims can be either a space-separated string or a list. Microsoft Entra has no scopes in tokens of clients, but
 * puts the permissions that an administrator has granted to the client into `roles`.
 */
export function scopesOf({ scope, scp, roles, idtyp }: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  return new Set([scope, scp, idtyp === 'app' ? roles : undefined].flatMap(wordsOf));
}

function wordsOf(claim: unknown): readonly string[] {
  if (typeof claim === 'string') return claim.split(' ').filter(word => word !== '');
  return Array.isArray(claim) && claim.every(word => typeof word === 'string') ? claim : [];
}
