interface Package {
  readonly name: string;
  readonly version: string;
  /** The reason, e.g. `EINTEGRITYSIGNATURE`. */
  readonly code?: string;
}

/** The used part of the output of `npm audit signatures --json`. */
interface Report {
  readonly invalid?: readonly Package[];
  readonly missing?: readonly Package[];
  readonly error?: { readonly code?: string; readonly summary?: string };
}

const firstLine = (text: string): string => text.trim().split('\n')[0] ?? '';

function parseReport(printed: string): Report {
  try {
    return JSON.parse(printed) as Report;
  } catch {
    return {};
  }
}

/** Errors of a package with which npm exits before its report, instead of listing the package as invalid. */
const FAILURES = new Set(['EMISSINGSIGNATUREKEY', 'EEXPIREDSIGNATUREKEY', 'EATTESTATIONSUBJECT']);

/**
 * Returns the lines to print, and false if a package has an invalid signature. Packages without a signature are only
 * listed because some mirrors of the registry omit signatures.
 * @param printed output of `npm audit signatures --json`
 * @param failure the reason if npm did not exit with 0
 */
export function judgeSignatures(
  printed: string,
  failure: string | undefined,
): { readonly lines: readonly string[]; readonly passed: boolean } {
  const { invalid, missing, error } = parseReport(printed);
  const isFailure = error?.code !== undefined && FAILURES.has(error.code);
  const lines = [
    ...(invalid ?? []).map(each => `FAILED: ${each.name}@${each.version} has an invalid signature (${each.code})`),
    ...(isFailure ? [`FAILED: ${firstLine(error.summary || 'a package is not trusted')} (${error.code})`] : []),
    ...(missing ?? []).map(each => `NOT CHECKED: ${each.name}@${each.version} has no signature`),
  ];
  if (lines.length > 0) return { lines, passed: !isFailure && (invalid ?? []).length === 0 };
  if (failure === undefined && invalid !== undefined && missing !== undefined) {
    return { lines: ['the packages of package-lock.json have valid signatures'], passed: true };
  }
  const reason = firstLine(error?.summary || error?.code || failure || 'there is no report');
  return { lines: [`SKIPPED: ${reason}. The signatures of packages were not checked`], passed: true };
}
