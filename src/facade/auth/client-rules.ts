type Claims = Readonly<Record<string, unknown>>;

/** The claim used to recognize a client token. `{client}` in the value stands for the client's id. */
export interface ClientClaim {
  readonly name: string;
  readonly value: string;
}

/** Claims with the client id, in order of preference: RFC 9068, OpenID Connect, Microsoft Entra v1, Okta. */
const CLIENT_CLAIMS = ['client_id', 'azp', 'appid', 'cid'];

/** Claims that are only issued when a person has signed in (OpenID Connect Core, Okta's `uid`). */
const SIGN_IN_CLAIMS = ['auth_time', 'amr', 'sid', 'uid', 'nonce'];

/**
 * Returns the client for which a token was issued. Undefined if the token represents a person using a client. A token
 * represents a person unless one of the following rules or a `configured` claim applies.
 */
export function clientOf(claims: Claims, configured: readonly ClientClaim[]): string | undefined {
  const client = CLIENT_CLAIMS.map(name => claimOf(claims, name)).find(isText);
  if (client === undefined) return undefined;
  const matches = ({ name, value }: ClientClaim) =>
    textOf(claimOf(claims, name)) === value.replaceAll('{client}', () => client);
  return RULES.some(holds => holds(claims, client)) || configured.some(matches) ? client : undefined;
}

/**
 * Rules that apply to every issuer. A person must not be able to fulfill these rules, even if people can choose their
 * own user names. Because of this, each rule depends on claims that the provider sets itself.
 */
const RULES: readonly ((claims: Claims, client: string) => boolean)[] = [
  // RFC 9068, 2.2: without a resource owner, the subject is the client. For example, this is used by Okta.
  (claims, client) =>
    claimOf(claims, 'sub') === client && SIGN_IN_CLAIMS.every(name => claimOf(claims, name) === undefined),
  // Auth0. A name such as `<client>@clients` is not sufficient.
  (claims, client) => claimOf(claims, 'gty') === 'client-credentials' && claimOf(claims, 'sub') === `${client}@clients`,
  // Microsoft Entra, with the optional `idtyp` claim.
  claims => claimOf(claims, 'idtyp') === 'app',
  // Keycloak. The last three claims are taken from a service account's session.
  (claims, client) =>
    claimOf(claims, 'preferred_username') === `service-account-${client.toLowerCase()}` &&
    [claimOf(claims, 'client_id'), claimOf(claims, 'clientId')].includes(client) &&
    isText(claimOf(claims, 'clientHost')) &&
    isText(claimOf(claims, 'clientAddress')),
];

function claimOf(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined;
}

function textOf(claim: unknown): string | undefined {
  return typeof claim === 'string' || typeof claim === 'boolean' ? String(claim) : undefined;
}

/** Returns true for a claim that is a text and not empty. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
