import type { RefusalFacts } from './refusal.ts';

/**
 * The facts to use for a 415 if the body is compressed. `Accept-Encoding` tells clients what to send instead (RFC 9110,
 * 15.5.16).
 */
const COMPRESSED: RefusalFacts = {
  detail: 'Compressed bodies are not supported. Send the body as it is, without the Content-Encoding header.',
  headers: { 'accept-encoding': 'identity' },
};

/**
 * The facts to use for a 415 if the body has a transfer coding other than `chunked`. This is needed because Node only
 * removes the chunks, so the bytes would still be compressed.
 */
const TRANSFER_CODED: RefusalFacts = {
  detail:
    'The only transfer coding that is supported is "Transfer-Encoding: chunked". Send the body without the others.',
};

/** The headers that say how a body is coded. */
interface Codings {
  readonly 'content-encoding'?: string | undefined;
  readonly 'transfer-encoding'?: string | undefined;
}

/**
 * If the body has a content coding (RFC 9110, 8.4) or a transfer coding (RFC 9112, 7) such as gzip, this returns the
 * facts for `unsupported_media_type`. Otherwise, it returns undefined.
 */
export function faultOfCodings(headers: Codings): RefusalFacts | undefined {
  const { 'content-encoding': content, 'transfer-encoding': transfer } = headers;
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked') return TRANSFER_CODED;
  if (content === undefined) return undefined;
  const codings = content.split(',').map(coding => coding.trim().toLowerCase());
  return codings.every(coding => coding === '' || coding === 'identity') ? undefined : COMPRESSED;
}
