import type { RefusalFacts } from './refusal.ts';

/** Facts of the 415 for a compressed body. `Accept-Encoding` tells clients what to send instead (RFC 9110, 15.5.16). */
const COMPRESSED: RefusalFacts = {
  detail: 'Compressed bodies are not supported. Send the body as it is, without the Content-Encoding header.',
  headers: { 'accept-encoding': 'identity' },
};

/**
 * Returns the facts of `unsupported_media_type` if the body has a content coding such as gzip, and undefined otherwise.
 *
 * @param contentEncoding value of the Content-Encoding header, a list of codings (RFC 9110, 8.4)
 */
export function faultOfContentCoding(contentEncoding: string | undefined): RefusalFacts | undefined {
  if (contentEncoding === undefined) return undefined;
  const codings = contentEncoding.split(',').map(coding => coding.trim().toLowerCase());
  return codings.every(coding => coding === '' || coding === 'identity') ? undefined : COMPRESSED;
}
