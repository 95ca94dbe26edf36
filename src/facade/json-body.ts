import { Refusal } from './refusal.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Two things that JSON may say and no text of a custom resource can hold, and a key that would reach into prototypes. */
function refuseWhatCannotBeKept(key: string, value: unknown): unknown {
  for (const text of [key, value]) {
    if (typeof text === 'string' && (text.includes('\0') || !text.isWellFormed())) {
      throw new Refusal('malformed_body', 'Text has to be well-formed Unicode without NUL.');
    }
  }
  if (key === '__proto__') throw new Refusal('malformed_body', 'A field cannot be called __proto__.');
  return value;
}

/** Reads a JSON body (RFC 8259, UTF-8). None at all is undefined. @throws Refusal 400 `malformed_body` */
export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(decoder.decode(bytes), refuseWhatCannotBeKept);
  } catch (cause) {
    if (cause instanceof Refusal) throw cause;
    throw new Refusal('malformed_body', { cause });
  }
}
