import type { RefusalFacts } from './refusal.ts';

/**
 * The details of the 415 response to a compressed body. `Accept-Encoding` tells clients what to send instead (RFC 9110,
 * 15.5.16).
 */
const COMPRESSED: RefusalFacts = {
  detail: 'Compressed bodies are not supported. Send the body as it is, without the Content-Encoding header.',
  headers: { 'accept-encoding': 'identity' },
};

/**
 * The details of the 415 response to a body with a transfer coding other than `chunked`. Necessary because Node only
 * removes the chunks, so the bytes would still be compressed.
 */
const TRANSFER_CODED: RefusalFacts = {
  detail:
    'The only transfer coding that is supported is "Transfer-Encoding: chunked". Send the body without the others.',
};

/** The headers that specify the coding of a body. */
interface Codings {
  readonly 'content-encoding'?: string | undefined;
  readonly 'transfer-encoding'?: string | undefined;
}

/**
 * Returns the details of `unsupported_media_type` if the body has a content coding (RFC 9110, 8.4) or a transfer coding
 * (RFC 9112, 7) such as gzip. Returns undefined otherwise.
 */
export function faultOfCodings(headers: Codings): RefusalFacts | undefined {
  const { 'content-encoding': content, 'transfer-encoding': transfer } = headers;
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked') return TRANSFER_CODED;
  if (content === undefined) return undefined;
  const codings = content.split(',').map(coding => coding.trim().toLowerCase());
  return codings.every(coding => coding === '' || coding === 'identity') ? undefined : COMPRESSED;
}
