import { z } from 'zod';
import { list } from './lists.ts';

/** Since an issuer does not publish any secrets, we only allow asymmetric algorithms. */
export const SIGNING_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
];

/**
 * Checks an issuer's URL (OpenID Connect Discovery). The URL must use https unless it is a loopback address. It must
 * not have a query or a fragment.
 */
function isIssuer(text: string): boolean {
  if (!URL.canParse(text) || !/^[!-~]{1,512}$/.test(text) || /[?#\\]/.test(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== '' || password !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && /^(localhost|127\.[0-9.]+|\[::1\])$/.test(hostname));
}

/** Splits `name=value`, using the first equals sign. */
function parseClaim(text: string): { readonly name: string; readonly value: string } {
  const at = text.indexOf('=');
  return { name: text.slice(0, at), value: text.slice(at + 1) };
}

/** The variables used to configure the identity providers. */
export const OIDC_ENVIRONMENT = {
  SLUICE_OIDC_ISSUERS: list
    .refine(issuers => issuers.every(isIssuer), {
      message:
        'must be https URLs without a user, a query or a fragment, such as https://login.example.com, separated by commas; you can only use http for loopback addresses',
    })
    .prefault('')
    .describe(
      'A comma-separated list of identity providers whose access tokens are accepted at /waas. Each entry must match the iss claim of the tokens byte by byte. Required for the facade.',
    ),
  SLUICE_OIDC_AUDIENCE: z
    .string()
    .min(1)
    .optional()
    .describe('The audience that the aud claim of access tokens must contain. Required for the facade.'),
  SLUICE_OIDC_ALGORITHMS: list
    .refine(names => names.length > 0 && names.every(name => SIGNING_ALGORITHMS.includes(name)), {
      message: `must be one or more of ${SIGNING_ALGORITHMS.join(', ')}, separated by commas`,
    })
    .prefault('RS256')
    .describe(
      `A comma-separated list of signing algorithms to accept for access tokens. Can include any of ${SIGNING_ALGORITHMS.join(', ')}. Defaults to RS256.`,
    ),
  SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: z.coerce
    .number()
    .int()
    .min(0)
    .max(300)
    .default(30)
    .describe(
      'The permitted clock skew between Sluice and an issuer, in seconds (in either direction). Must not exceed 300.',
    ),
  SLUICE_OIDC_CLIENT_CLAIM: list
    .refine(claims => claims.every(claim => /^[!-~]*[!-<>-~]=[!-~]+$/.test(claim)), {
      message: 'must be a claim and its value, such as token_use=machine, with commas between several of them',
    })
    .transform(claims => claims.map(parseClaim))
    .prefault('')
    .describe(
      "A comma-separated list of claims, in the form name=value, that identify the access tokens of clients. At least one of them must match. In the value, {client} stands for the client id. Choose claims that the token of a person can never contain, at any of your issuers, because owners with a client field match these tokens. You don't need this for Auth0, Keycloak, Microsoft Entra (with the optional claim idtyp), Okta, and other providers whose sub claim is the client id.",
    ),
  SLUICE_OIDC_REQUIRE_SCOPES: z
    .enum(['true', 'false'])
    .default('false')
    .describe(
      'Set to true to require a scope for each call to /waas: waas:read, waas:write, waas:keys, or waas:replay, in the scope or scp claim of the access token. By default, scopes are ignored.',
    ),
  SLUICE_OIDC_MAX_TOKEN_AGE_SECONDS: z.coerce
    .number()
    .int()
    .min(60)
    .max(31_536_000)
    .optional()
    .describe(
      'The maximum age of an access token in seconds, at least 60. Older tokens, and tokens without an iat claim, are rejected even if they have not expired. By default, Sluice accepts tokens until they expire.',
    ),
} as const;

type Values = z.output<z.ZodObject<typeof OIDC_ENVIRONMENT>>;

/** Access tokens accepted by the facade. */
export interface OidcConfig {
  readonly issuers: readonly string[];
  readonly audience: string;
  readonly algorithms: readonly string[];
  readonly clockToleranceSeconds: number;
  /** The claims used to recognize the tokens of clients. */
  readonly clientClaims: readonly { readonly name: string; readonly value: string }[];
  readonly requireScopes: boolean;
  readonly maxAgeSeconds?: number;
}

/**
 * Reads the identity providers to be used by the facade. If there is an error, the required change will be added to
 * `problems`.
 */
export function readOidc(data: Values, problems: string[]): OidcConfig | undefined {
  const { SLUICE_OIDC_ISSUERS: issuers, SLUICE_OIDC_AUDIENCE: audience } = data;
  if (issuers.length === 0) {
    problems.push(
      'SLUICE_OIDC_ISSUERS: required for the facade. Set the URL of your identity provider, for example https://login.example.com',
    );
  }
  if (audience === undefined) {
    problems.push(
      'SLUICE_OIDC_AUDIENCE: required for the facade. Set the audience of your access tokens, for example sluice',
    );
  }
  if (issuers.length === 0 || audience === undefined) return undefined;
  return Object.freeze({
    issuers: Object.freeze([...new Set(issuers)]),
    audience,
    algorithms: Object.freeze([...new Set(data.SLUICE_OIDC_ALGORITHMS)]),
    clockToleranceSeconds: data.SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS,
    clientClaims: data.SLUICE_OIDC_CLIENT_CLAIM,
    requireScopes: data.SLUICE_OIDC_REQUIRE_SCOPES === 'true',
    ...(data.SLUICE_OIDC_MAX_TOKEN_AGE_SECONDS === undefined
      ? {}
      : { maxAgeSeconds: data.SLUICE_OIDC_MAX_TOKEN_AGE_SECONDS }),
  });
}
