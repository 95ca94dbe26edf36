import type { RefusalFacts } from './refusal.ts';

/** Facts of the 415 for a compressed body. `Accept-Encoding` tells clients what to send instead (RFC 9110, 15.5.16). */
const COMPRESSED: RefusalFacts = {
  detail: 'Compressed bodies are not supported. Send the body as it is, without the Content-Encoding header.',
  headers: { 'accept-encoding': 'identity' },
};

/**
 * Facts of the 415 for a body with another transfer coding than `chunked`. Node removes the chunks only, and would
 * return bytes that are still compressed.
 */
const TRANSFER_CODED: RefusalFacts = {
  detail:
    'The only transfer coding that is supported is "Transfer-Encoding: chunked". Send the body without the others.',
};

/** Headers that say how a body is coded. */
interface Codings {
  readonly 'content-encoding'?: string | undefined;
  readonly 'transfer-encoding'?: string | undefined;
}

/**
 * Returns the facts of `unsupported_media_type` if the body has a content coding (RFC 9110, 8.4) or a transfer coding
 * (RFC 9112, 7) such as gzip, and undefined otherwise.
 */
export function faultOfCodings(headers: Codings): RefusalFacts | undefined {
  const { 'content-encoding': content, 'transfer-encoding': transfer } = headers;
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked') return TRANSFER_CODED;
  if (content === undefined) return undefined;
  const codings = content.split(',').map(coding => coding.trim().toLowerCase());
  return codings.every(coding => coding === '' || coding === 'identity') ? undefined : COMPRESSED;
}
