import { API_VERSION } from '../../../../src/api/group-version.ts';
import { KINDS, type KindName } from '../../../../src/api/kinds/kinds.ts';

/** A manifest and the expected response of the API server. */
export interface ManifestCase {
  kind: KindName;
  /** A description for the test title. */
  title: string;
  /** metadata.name; absent: made up by the test. */
  name?: string;
  /** The object's earlier spec, when the case is about a change. */
  before?: object;
  /** The object's earlier status. */
  status?: object;
  spec: object;
  /** Absent: accepted. Else words that the refusal has to hold. */
  refusal?: string;
  /** The rule is one that only the API server knows, not the zod schema: about changes, names, unknown fields. */
  serverOnly: boolean;
}

type Extra = Partial<Pick<ManifestCase, 'name' | 'serverOnly'>>;

/**
 * Builders for the test cases of a kind. `base` contains the required fields, which a test case can extend or replace.
 */
export function casesOf(kind: KindName, base: object) {
  const build = (title: string, spec: object, rest: Partial<ManifestCase>): ManifestCase => ({
    kind,
    title,
    spec: { ...base, ...spec },
    serverOnly: false,
    ...rest,
  });
  return {
    accepts: (title: string, spec: object, extra: Extra = {}) => build(title, spec, extra),
    refuses: (title: string, spec: object, refusal: string, extra: Extra = {}) =>
      build(title, spec, { refusal, ...extra }),
    acceptsChange: (title: string, before: object, spec: object) =>
      build(title, spec, { before: { ...base, ...before }, serverOnly: true }),
    refusesChange: (title: string, before: object, spec: object, refusal: string, status?: object) =>
      build(title, spec, { before: { ...base, ...before }, refusal, serverOnly: true, ...(status && { status }) }),
  };
}

/** The manifest as JSON, which kubectl reads as YAML. */
export function manifestOf(
  found: Pick<ManifestCase, 'kind'>,
  part: { name: string; namespace: string; labels?: object; spec: object; status?: object },
): string {
  const namespace = KINDS[found.kind].scope === 'Namespaced' ? { namespace: part.namespace } : {};
  return JSON.stringify({
    apiVersion: API_VERSION,
    kind: found.kind,
    metadata: { name: part.name, ...namespace, ...(part.labels && { labels: part.labels }) },
    spec: part.spec,
    ...(part.status && { status: part.status }),
  });
}
