import type { IncomingMessage } from 'node:http';
import fastifyExpress from '@fastify/express';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { MOST_PARAMETERS } from '../../http/query-pieces.ts';
import { Refusal } from '../../http/refusal.ts';
import type { Logger } from '../../telemetry/log.ts';
import { parseToken, readCredentials } from './bearer-token.ts';
import { refuseMisplaced, refuseMissing, refuseRequest, refuseToken, refuseUndecided } from './challenge.ts';
import type { ClientClaim } from './client-rules.ts';
import { declareIdentity, type Identity, readIdentity, setIdentity } from './identity.ts';
import { IssuerUnavailableError } from './issuer-keys.ts';
import { createIssuers, type Issuers } from './issuers.ts';
import type { AuthenticationLimits } from './limits.ts';
import { carriesToken } from './query-token.ts';
import { findFault, type TokenFault, type TokenRules } from './token-fault.ts';
import type { TokenRefusal } from './token-refusal.ts';
import { createVerifiedTokens } from './verified-tokens.ts';
import { createVerifiers, type Verifier } from './verifier.ts';

export interface AuthenticationOptions extends TokenRules {
  readonly log: Logger;
  /** Claims used to recognize client tokens, in addition to the claims that are always recognized. */
  readonly clientClaims?: readonly ClientClaim[];
  /** True if tokens require the scope of the route. Routes check this, since unknown paths don't have a scope. */
  readonly requireScopes?: boolean;
  readonly limits?: Partial<AuthenticationLimits>;
  /** The keys of all issuers. By default, each server reads them itself. */
  readonly keys?: Pick<Issuers, 'keysOf'>;
  /** Wall clock in milliseconds. The library that verifies tokens doesn't use it. */
  readonly nowMs?: () => number;
  /** Monotonic clock in milliseconds, for the keys of issuers and for tokens whose signature is known to be valid. */
  readonly monotonicMs?: () => number;
  /** Called when a call is rejected because of its token. */
  readonly onRefused?: (reason: TokenRefusal) => void;
}

const reasons = new WeakMap<Refusal, TokenRefusal>();

/** Returns the reason why a call was rejected because of its token. Undefined for all other rejections. */
export function reasonOf(refusal: Refusal): TokenRefusal | undefined {
  return reasons.get(refusal);
}

type ExpressRequest = Parameters<Verifier>[0];
type ExpressResponse = Parameters<Verifier>[1];

/**
 * Requires a verified bearer token for every request in a scope, including the not-found handler and any nested scopes.
 * Handlers can then get the caller using `identityOf(request)`. Must be called once, before anything else in the
 * encapsulated plugin. Refused requests cause a Refusal with 400, 401, or 503 to be passed to the error handler.
 */
export async function registerAuthentication(scope: FastifyInstance, options: AuthenticationOptions): Promise<void> {
  const authenticate = createAuthenticator(options);
  const outcomes = new WeakMap<IncomingMessage, Identity | Refusal>();
  declareIdentity(scope);
  scope.addHook('onRequest', async request => refuseBadTarget(request.raw.url ?? '', options.onRefused));
  await scope.register(fastifyExpress);
  // Don't add a path here: Express and the router match paths differently. The middleware itself never fails. The next
  // hook checks the result, and also refuses the request should Express have skipped the middleware.
  scope.use(async (request, response, next) => {
    outcomes.set(request, await authenticate(request, response));
    next();
  });
  scope.addHook('onRequest', async (request, reply) => {
    removeTraces(request, reply);
    const outcome = outcomes.get(request.raw) ?? refuseMissing();
    if (outcome instanceof Refusal) throw outcome;
    setIdentity(request, outcome);
  });
}

/** Has to run before Express, which decodes the whole target (including the query) and throws if it is invalid. */
function refuseBadTarget(target: string, onRefused: AuthenticationOptions['onRefused']): void {
  const carries = carriesToken(target);
  if (carries === 'too many') {
    throw new Refusal('malformed_request', `The query contains more than ${MOST_PARAMETERS} parameters.`);
  }
  if (carries) {
    onRefused?.('misplaced');
    throw refuseMisplaced('Send the token in the Authorization header, not in the query');
  }
  try {
    decodeURI(target);
  } catch {
    throw new Refusal('malformed_request', 'The path or the query is not valid percent-encoded UTF-8.');
  }
}

/** Creates the function that checks a request's credentials. Only rejects if there's a bug in our code. */
function createAuthenticator(options: AuthenticationOptions) {
  const { nowMs = Date.now, monotonicMs = () => performance.now() } = options;
  const tokens = createVerifiedTokens(monotonicMs);
  const { keysOf } = options.keys ?? createIssuers({ ...options, nowMs: monotonicMs });
  const findVerifiers = createVerifiers(options);
  const counted = (reason: TokenRefusal, refusal: Refusal): Refusal => {
    options.onRefused?.(reason);
    reasons.set(refusal, reason);
    return refusal;
  };
  const refuse = (fault: TokenFault): Refusal => counted(fault, refuseToken(fault, options.audience));

  return async (request: ExpressRequest, response: ExpressResponse): Promise<Identity | Refusal> => {
    const credentials = readCredentials(request.rawHeaders);
    if (credentials.kind === 'none') return counted('missing', refuseMissing());
    if (credentials.kind === 'ambiguous') {
      const what = 'Send exactly one Authorization header, with one scheme, one space and one token';
      return counted('misplaced', refuseMisplaced(what));
    }
    const token = parseToken(credentials.token);
    if (token === undefined) return refuse('malformed');
    const fault = findFault(token, options, Math.floor(nowMs() / 1_000));
    if (fault !== undefined) return refuse(fault);
    // findFault has made sure that all three values exist. We don't trust them yet, since the middleware repeats these
    // checks on the verified token.
    const [issuer, algorithm, kid] = [token.claims['iss'], token.header['alg'], token.header['kid']] as string[];
    try {
      const issuerKeys = keysOf(issuer as string);
      let keys = await issuerKeys?.find(kid as string);
      if (keys === undefined) return refuse('key');
      const known = tokens.find(credentials.token, keys);
      if (known !== undefined) return known;
      const key = { issuer: issuer as string, algorithm: algorithm as string, kid: kid as string };
      let verified = await verifyWithAny(findVerifiers(key, keys), request, response);
      const newer = verified === 'signature' ? await issuerKeys?.findNewer(key.kid, keys) : undefined;
      if (newer !== undefined) {
        keys = newer;
        verified = await verifyWithAny(findVerifiers(key, keys), request, response);
      }
      if (verified === 'signature') return refuse(verified);
      if (verified === 'request') return counted(verified, refuseRequest());
      const identity = readIdentity(verified, options.clientClaims);
      tokens.add(credentials.token, keys, identity);
      return identity;
    } catch (error) {
      if (error instanceof IssuerUnavailableError) return counted('undecided', refuseUndecided());
      throw error;
    }
  };
}

/** Returns the result of the first verifier that accepts the signature. */
async function verifyWithAny(
  verifiers: readonly Verifier[],
  request: ExpressRequest,
  response: ExpressResponse,
): ReturnType<typeof verify> {
  for (const verifier of verifiers) {
    const verified = await verify(verifier, request, response);
    if (verified !== 'signature') return verified;
  }
  return 'signature';
}

/** Returns the verified claims, or the reason if the token is not valid. */
async function verify(
  verifier: Verifier,
  request: ExpressRequest,
  response: ExpressResponse,
): Promise<Readonly<Record<string, unknown>> | 'signature' | 'request'> {
  const error = await new Promise<unknown>((resolve, reject) => {
    Promise.resolve(verifier(request, response, resolve)).catch(reject);
  });
  if (error !== undefined) {
    return (error as { status?: unknown }).status === 400 ? 'request' : 'signature';
  }
  return request.auth?.payload ?? 'signature';
}

/**
 * Restores the Node objects after @fastify/express, which leaves the decoded target and a `headersSent` property on
 * them.
 */
function removeTraces({ raw }: FastifyRequest, reply: FastifyReply): void {
  const { originalUrl } = raw as { originalUrl?: unknown };
  if (typeof originalUrl === 'string') raw.url = originalUrl;
  Reflect.deleteProperty(reply.raw, 'headersSent');
}
