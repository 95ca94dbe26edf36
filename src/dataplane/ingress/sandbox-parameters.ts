const SANDBOX_PARAMETERS = new Map([
  ['sb_fail_code', 'sb_fail_code'],
  ['sb_fail_count', 'sb_fail_count'],
  ['runid', 'runId'],
]);

/**
 * The sandbox parameter that a request target names, undefined when it names none. With or without a value, in any
 * spelling that decodes to it; case, outer blanks and `;` as a separator are forgiven too, because an event that was
 * meant for the sandbox must not reach partners for want of a spelling.
 */
export function findSandboxParameter(target: string): string | undefined {
  // A fragment should not be there at all; where it is, the router ends the path at it.
  const start = target.search(/[?#]/);
  if (start === -1) return undefined;
  for (const pair of target.slice(start + 1).split(/[&;?#]/)) {
    const end = pair.indexOf('=');
    const name = decodeName(end === -1 ? pair : pair.slice(0, end));
    const found = SANDBOX_PARAMETERS.get(name);
    if (found !== undefined) return found;
  }
  return undefined;
}

function decodeName(encoded: string): string {
  // Byte by byte: the three names are ASCII, so broken UTF-8 elsewhere in a name cannot hide one of them.
  return encoded
    .replace(/\+/g, ' ')
    .replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .trim()
    .toLowerCase();
}
